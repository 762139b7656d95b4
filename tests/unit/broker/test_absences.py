"""Why a replica is not in sync: by the leader's own reckoning, or by what the pictures show."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from ottla.broker.absences import Absence, Absences, absences_in
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage
from ottla.model.ids import BrokerId, Offset, TopicPartition
from ottla.protocol.messages.describe_topic_partitions import (
    NOT_KNOWN,
    AbsenceCause,
    ReplicaAbsence,
)
from unit.broker.cluster import a_partition, a_picture, a_topic
from unit.broker.stage import LAG_MS, ME, THREE, TWO, Stage, an_image

ALL = (ME, TWO, THREE)
PARTITION = TopicPartition("topic", 0)


def a_cluster(
    leader: int = ME, isr: Iterable[int] = ALL, *, brokers: Iterable[int] = ALL, epoch: int = 0
) -> ClusterImage:
    return a_picture(
        a_topic("topic", a_partition(0, leader, *ALL, isr=isr, epoch=epoch)), brokers=brokers
    )


def causes_after(*pictures: ClusterImage) -> dict[BrokerId, AbsenceCause]:
    absences = Absences(Stage().standing, pictures[0])
    for picture in pictures[1:]:
        absences.told(picture)
    return {replica: each.cause for replica, each in absences.of(PARTITION).items()}


def with_epoch(image: ClusterImage, broker: BrokerId, epoch: int) -> ClusterImage:
    registered = BrokerImage(broker, image.brokers[broker].endpoints, None, epoch)
    return replace(image, brokers={**image.brokers, broker: registered})


def test_one_that_is_not_registered_any_more_had_its_session_end() -> None:
    after = a_cluster(isr=(ME, TWO), brokers=(ME, TWO))
    assert causes_after(a_cluster(), after) == {THREE: AbsenceCause.SESSION_ENDED}


def test_one_that_came_back_at_once_had_its_session_end_too() -> None:
    after = with_epoch(a_cluster(isr=(ME, TWO)), THREE, 99)
    assert causes_after(a_cluster(), after) == {THREE: AbsenceCause.SESSION_ENDED}


def test_one_that_the_controller_took_out_though_it_lives_was_stopped() -> None:
    taken_out = a_cluster(isr=(ME, TWO))
    gone = a_cluster(isr=(ME, TWO), brokers=(ME, TWO))
    assert causes_after(a_cluster(), taken_out, gone) == {THREE: AbsenceCause.STOPPED}


def test_one_that_was_stopped_and_whose_last_fetch_brought_it_back_was_stopped() -> None:
    story = [
        a_cluster(),
        a_cluster(isr=(ME, TWO)),
        a_cluster(),
        a_cluster(brokers=(ME, TWO)),
        a_cluster(isr=(ME, TWO), brokers=(ME, TWO)),
    ]
    assert causes_after(*story) == {THREE: AbsenceCause.STOPPED}


def test_one_that_was_stopped_and_started_again_may_die_like_any_other() -> None:
    story = [
        a_cluster(),
        a_cluster(isr=(ME, TWO)),
        with_epoch(a_cluster(), THREE, 99),
        a_cluster(brokers=(ME, TWO)),
        a_cluster(isr=(ME, TWO), brokers=(ME, TWO)),
    ]
    assert causes_after(*story) == {THREE: AbsenceCause.SESSION_ENDED}


def test_a_leader_that_gave_up_by_itself_was_not_stopped() -> None:
    """It left first, and then the controller elected: two epochs, if seen in one picture."""
    after = a_cluster(leader=ME, isr=(ME, THREE), epoch=2)
    assert causes_after(a_cluster(leader=TWO), after) == {}


@pytest.mark.parametrize(
    ("brokers", "cause"),
    [(ALL, AbsenceCause.STOPPED), ((ME, THREE), AbsenceCause.SESSION_ENDED)],
)
def test_who_takes_over_knows_why_its_predecessor_left(
    brokers: tuple[int, ...], cause: AbsenceCause
) -> None:
    before = a_cluster(leader=TWO)
    after = a_cluster(leader=ME, isr=(ME, THREE), brokers=brokers, epoch=1)
    assert causes_after(before, after) == {TWO: cause}


def test_what_another_leader_saw_is_not_guessed() -> None:
    before = a_cluster(leader=TWO)
    assert not causes_after(before, a_cluster(leader=TWO, isr=(ME, TWO)))
    assert not causes_after(before, a_cluster(leader=ME, isr=(ME, TWO), epoch=1))


def test_a_follower_that_leads_later_still_knows_who_died() -> None:
    died = a_cluster(leader=TWO, isr=(ME, TWO), brokers=(ME, TWO))
    led = a_cluster(leader=ME, isr=(ME, TWO), brokers=(ME, TWO), epoch=1)
    assert causes_after(a_cluster(leader=TWO), died, led) == {THREE: AbsenceCause.SESSION_ENDED}


def test_who_is_back_in_sync_or_holds_no_replica_is_forgotten() -> None:
    died = a_cluster(isr=(ME, TWO), brokers=(ME, TWO))
    assert not causes_after(a_cluster(), died, a_cluster())
    moved = a_picture(a_topic("topic", a_partition(0, ME, ME, TWO)), brokers=(ME, TWO))
    assert not causes_after(a_cluster(), died, moved)


def test_a_topic_made_again_begins_without_reasons() -> None:
    died = a_cluster(isr=(ME, TWO), brokers=(ME, TWO))
    again = a_picture(
        a_topic("topic", a_partition(0, ME, *ALL, isr=(ME, TWO)), incarnation=1), brokers=(ME, TWO)
    )
    assert not causes_after(a_cluster(), died, again)
    assert not causes_after(a_cluster(), died, a_picture(brokers=(ME, TWO)))


def test_a_wish_of_an_earlier_leadership_explains_nothing_later() -> None:
    stage = a_leader()
    absences = Absences(stage.standing, a_cluster())
    absences.wished_out(stage.partition, THREE)
    absences.told(a_cluster(leader=TWO, epoch=1))
    absences.told(a_cluster(leader=TWO, epoch=1, isr=(ME, TWO), brokers=(ME, TWO)))
    assert absences.of(PARTITION)[THREE].cause is AbsenceCause.SESSION_ENDED


def a_leader() -> Stage:
    return Stage(an_image(ME, replicas=ALL))


def given_up(stage: Stage) -> Absence:
    return Absences(stage.standing, a_cluster()).wished_out(stage.partition, THREE)


def test_one_that_asked_for_nothing_any_more_was_silent() -> None:
    stage = a_leader()
    stage.partition.fetched_by(THREE, Offset(0))
    stage.append(b"a", b"b")
    stage.clock.ms += LAG_MS + 5
    left = given_up(stage)
    assert left.cause is AbsenceCause.SILENT
    assert (left.silent_ms, left.lag_ms, left.lag_records) == (LAG_MS + 5, LAG_MS + 5, 2)


def test_one_that_asked_and_did_not_catch_up_was_behind() -> None:
    stage = a_leader()
    for _ in range(40):
        stage.append(b"a", b"b")
        stage.clock.ms += 1_000
        stage.partition.fetched_by(THREE, Offset(1))
    left = given_up(stage)
    assert left.cause is AbsenceCause.BEHIND
    assert (left.silent_ms, left.lag_ms, left.lag_records) == (0, 40_000, 79)


def described(stage: Stage, absences: Absences, image: PartitionImage) -> list[ReplicaAbsence]:
    return absences_in(stage.partition, image, absences)


def test_a_leader_describes_who_is_absent_then_and_now() -> None:
    stage = a_leader()
    stage.partition.fetched_by(THREE, Offset(0))
    stage.append(b"a", b"b")
    stage.clock.ms += LAG_MS + 5
    absences = Absences(stage.standing, a_cluster())
    absences.wished_out(stage.partition, THREE)
    stage.clock.ms += 1_000
    stage.partition.fetched_by(THREE, Offset(1))
    stage.clock.ms += 10
    (told,) = described(stage, absences, an_image(ME, replicas=ALL, isr=(ME, TWO)))
    assert (told.replica_id, told.cause) == (THREE, AbsenceCause.SILENT)
    assert told.left_ms == stage.clock.ms - 1_010
    assert (told.silent_ms, told.lag_records) == (LAG_MS + 5, 2)
    assert (told.silent_now_ms, told.lag_records_now) == (10, 1)


def test_one_that_left_before_anybody_here_looked_is_described_by_what_is_seen() -> None:
    stage = Stage(an_image(ME, replicas=ALL, isr=(ME, TWO)))
    absences = Absences(stage.standing, a_cluster(isr=(ME, TWO)))
    (told,) = described(stage, absences, an_image(ME, replicas=ALL, isr=(ME, TWO)))
    assert told == ReplicaAbsence(THREE)
    assert told.silent_now_ms == NOT_KNOWN


def test_only_a_leader_describes_and_only_who_is_absent() -> None:
    stage = a_leader()
    absences = Absences(stage.standing, a_cluster())
    assert not described(stage, absences, an_image(ME, replicas=ALL))
    stage.partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
    assert not described(stage, absences, an_image(TWO, epoch=1, replicas=ALL, isr=(ME, TWO)))
