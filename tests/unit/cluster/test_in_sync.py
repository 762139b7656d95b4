"""The leader's reckoning of its replicas: who is in sync, and what is committed."""

from __future__ import annotations

import pytest

from ottla.cluster.image import PartitionImage
from ottla.cluster.in_sync import InSync
from ottla.model.ids import BrokerId, LeaderEpoch, Offset

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
LAG_MS = 30_000
NOW_MS = 1_000_000


def a_set(*members: BrokerId, epoch_start: int = 0) -> InSync:
    everyone = (ONE, TWO, THREE)
    image = PartitionImage(0, ONE, LeaderEpoch(3), members or everyone, everyone, 7)
    return InSync(ONE, image, epoch_start_offset=Offset(epoch_start), now_ms=NOW_MS)


def watermark(replicas: InSync, leader_end: int, now_ms: int = NOW_MS) -> int:
    return replicas.high_watermark(Offset(leader_end), now_ms, LAG_MS)


def test_nothing_is_committed_until_every_member_has_shown_where_it_is() -> None:
    replicas = a_set()
    replicas.fetched(TWO, 10, 10, NOW_MS)
    assert watermark(replicas, 10) == 0
    replicas.fetched(THREE, 4, 10, NOW_MS)
    assert watermark(replicas, 10) == 4


def test_a_leader_alone_in_its_set_commits_by_itself() -> None:
    assert watermark(a_set(ONE), 10) == 10


def test_a_replica_outside_the_set_that_keeps_up_counts_already() -> None:
    replicas = a_set(ONE, TWO)
    replicas.fetched(TWO, 10, 10, NOW_MS)
    replicas.fetched(THREE, 10, 10, NOW_MS)
    replicas.fetched(THREE, 8, 12, NOW_MS)
    assert watermark(replicas, 12) == 8


def test_a_dead_replica_outside_the_set_does_not_count() -> None:
    replicas = a_set(ONE, TWO)
    replicas.fetched(TWO, 10, 10, NOW_MS)
    assert watermark(replicas, 10) == 10


def test_a_replica_that_has_not_reached_the_epoch_does_not_hold_the_watermark_back() -> None:
    replicas = a_set(ONE, TWO, epoch_start=50)
    replicas.fetched(TWO, 60, 60, NOW_MS)
    replicas.fetched(THREE, 40, 40, NOW_MS)
    assert watermark(replicas, 60) == 60


def test_a_joining_replica_counts_from_its_proposal_on() -> None:
    replicas = a_set(ONE, TWO)
    replicas.fetched(TWO, 10, 10, NOW_MS)
    replicas.fetched(THREE, 10, 10, NOW_MS)
    replicas.propose([ONE, TWO, THREE])
    later = NOW_MS + 2 * LAG_MS
    replicas.fetched(TWO, 20, 20, later)
    assert watermark(replicas, 20, later) == 10


def test_a_leaving_replica_counts_until_its_leaving_is_committed() -> None:
    replicas = a_set()
    replicas.fetched(TWO, 10, 10, NOW_MS)
    replicas.fetched(THREE, 3, 10, NOW_MS)
    later = NOW_MS + 2 * LAG_MS
    replicas.fetched(TWO, 10, 10, later)
    replicas.propose([ONE, TWO])
    assert watermark(replicas, 10, later) == 3
    replicas.confirmed([ONE, TWO], 8)
    assert watermark(replicas, 10, later) == 10


def test_a_member_lags_only_after_it_has_missed_something_for_the_whole_period() -> None:
    replicas = a_set()
    replicas.fetched(TWO, 10, 10, NOW_MS)
    replicas.fetched(THREE, 10, 10, NOW_MS)
    assert replicas.lagging(Offset(10), NOW_MS + LAG_MS + 1, LAG_MS) == frozenset()
    assert replicas.lagging(Offset(11), NOW_MS + LAG_MS, LAG_MS) == frozenset()
    assert replicas.lagging(Offset(11), NOW_MS + LAG_MS + 1, LAG_MS) == {TWO, THREE}


def test_a_follower_that_always_reaches_the_end_of_its_last_fetch_keeps_up() -> None:
    replicas = a_set()
    for step in range(1, 10):
        now_ms = NOW_MS + step * LAG_MS
        replicas.fetched(TWO, 10 * step, 10 * (step + 1), now_ms)
    assert TWO not in replicas.lagging(Offset(100), NOW_MS + 9 * LAG_MS, LAG_MS)


def test_a_follower_joins_with_all_that_is_committed_and_of_this_epoch() -> None:
    replicas = a_set(ONE, TWO, epoch_start=50)
    replicas.fetched(THREE, 49, 60, NOW_MS)
    assert not replicas.can_join(THREE, Offset(40))
    replicas.fetched(THREE, 55, 60, NOW_MS)
    assert not replicas.can_join(THREE, Offset(56))
    assert replicas.can_join(THREE, Offset(55))
    replicas.propose([ONE, TWO, THREE])
    assert not replicas.can_join(THREE, Offset(55))


def test_old_news_of_the_set_change_nothing() -> None:
    replicas = a_set()
    proposal = replicas.propose([ONE, TWO])
    assert proposal.partition_epoch == 7
    replicas.confirmed([ONE], 7)
    assert replicas.proposal is not None
    replicas.confirmed([ONE, TWO], 8)
    assert replicas.members == {ONE, TWO}
    assert replicas.proposal is None


def test_a_leader_cannot_propose_a_set_without_itself() -> None:
    with pytest.raises(AssertionError):
        a_set().propose([TWO, THREE])


def test_a_broker_that_does_not_hold_the_partition_is_not_listened_to() -> None:
    replicas = a_set()
    replicas.fetched(BrokerId(9), 100, 100, NOW_MS)
    assert BrokerId(9) not in replicas.followers


def test_new_replicas_have_to_show_themselves() -> None:
    replicas = a_set(ONE, TWO)
    replicas.fetched(TWO, 10, 10, NOW_MS)
    replicas.reassigned([ONE, TWO, BrokerId(4)])
    assert set(replicas.followers) == {TWO, BrokerId(4)}
    assert watermark(replicas, 10) == 10


def test_who_was_taken_out_of_the_set_is_not_waited_for_until_it_shows_itself() -> None:
    replicas = a_set()
    for follower in (TWO, THREE):
        replicas.fetched(follower, 10, 10, NOW_MS)
    replicas.fetched(TWO, 12, 12, NOW_MS)
    assert watermark(replicas, 12) == 10
    replicas.confirmed((ONE, TWO), 8)
    assert watermark(replicas, 12) == 12
    replicas.fetched(THREE, 12, 12, NOW_MS)
    replicas.fetched(TWO, 14, 14, NOW_MS)
    assert watermark(replicas, 14) == 12
    replicas.gone([TWO, THREE])
    assert watermark(replicas, 14) == 14, "and a member is waited for, dead or not"
    assert watermark(replicas, 16) == 14
