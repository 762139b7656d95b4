"""What one broker sends another: no newer than its level, and than what the other knows."""

from __future__ import annotations

import pytest

from ottla.broker.replica_fetcher import FETCH_VERSION_MIN, ReplicaFetcher
from ottla.broker.spoken_versions import NEWEST_SPOKEN, SpokenVersions
from ottla.errors import UnsupportedVersion
from ottla.protocol.api import APIS, ApiKey
from ottla.settings.protocol_level import LEVELS
from unit.broker.leader import a_leader
from unit.broker.stage import ME, TWO, Stage, an_image
from unit.broker.unthrottled import unthrottled
from unit.net.running import run
from unit.net.served import wait_until

OLD = SpokenVersions.of(LEVELS[0])
EVERYTHING = dict.fromkeys(map(int, ApiKey), 99)


@pytest.mark.parametrize(
    ("key", "old", "newest"),
    [
        (ApiKey.FETCH, 16, 17),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 4, 5),
        (ApiKey.WRITE_TXN_MARKERS, 1, 2),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 3),
    ],
)
def test_the_level_bounds_what_is_sent(key: ApiKey, old: int, newest: int) -> None:
    assert OLD.version_for(APIS[key], EVERYTHING) == old
    assert NEWEST_SPOKEN.version_for(APIS[key], EVERYTHING) == newest


def test_what_the_other_knows_bounds_it_too() -> None:
    assert NEWEST_SPOKEN.version_for(APIS[ApiKey.FETCH], {ApiKey.FETCH: 15}) == 15
    with pytest.raises(UnsupportedVersion):
        NEWEST_SPOKEN.version_for(APIS[ApiKey.FETCH], {ApiKey.PRODUCE: 9})


@pytest.mark.parametrize(
    ("spoken", "theirs", "sent"),
    [(OLD, 18, 16), (NEWEST_SPOKEN, 18, 17), (NEWEST_SPOKEN, 16, 16)],
)
def test_a_follower_asks_in_a_version_that_both_may_use(
    spoken: SpokenVersions, theirs: int, sent: int
) -> None:
    async def scenario() -> None:
        stage = Stage(an_image(TWO, epoch=5, replicas=(ME, TWO)))
        async with a_leader() as leader:
            leader.newest_version = theirs
            fetcher = ReplicaFetcher(ME, TWO, leader.address, unthrottled(), spoken)
            fetcher.follow(stage.partition)
            try:
                request = await leader.asked(1)
            finally:
                await fetcher.stop()
            assert leader.versions == [sent]
            assert request.replica_state is not None
            assert request.replica_state.replica_id == ME

    run(scenario())


def test_a_leader_that_is_too_old_is_not_sent_what_it_does_not_know() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(TWO, epoch=5, replicas=(ME, TWO)))
        async with a_leader() as leader:
            leader.newest_version = FETCH_VERSION_MIN - 1
            fetcher = ReplicaFetcher(ME, TWO, leader.address, unthrottled())
            fetcher.follow(stage.partition)
            try:
                await wait_until(lambda: leader.connections > 1)
            finally:
                await fetcher.stop()
            assert leader.requests == []

    run(scenario())
