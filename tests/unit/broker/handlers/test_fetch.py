"""What followers and consumers in other racks are answered, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.handlers.fetch import FetchHandler
from ottla.broker.replica_fetcher import FETCH_VERSION_MIN
from ottla.broker.replica_reads import WATERMARK_SECONDS_MAX, ReplicaReads
from ottla.broker.request import RequestContext, settled
from ottla.cluster.image import BrokerImage
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, Offset
from ottla.net.server_connection import Peer
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.settings.replication import RACK_AWARE, ReplicationSettings
from unit.broker.stage import LAG_MS, ME, THREE, TOPIC_ID, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns

ALL = (ME, TWO, THREE)
RACKS = {ME: "north", TWO: "south", THREE: "south"}
FROM_FOLLOWERS = ReplicationSettings(replica_selector_class=RACK_AWARE)


class Fetching:
    """A broker with one partition, and those who read it."""

    def __init__(self, stage: Stage, settings: ReplicationSettings | None = None) -> None:
        self.stage = stage
        self.settings = settings or ReplicationSettings()
        brokers = {each: BrokerImage(each, (), rack, 1) for each, rack in RACKS.items()}
        reads = ReplicaReads(ME, lambda: self.settings, lambda: brokers)
        self.handler = FetchHandler(
            stage.partitions, FetchSessions(10), reads, stage.clock, 1 << 20
        )
        self.sessions: dict[BrokerId, tuple[int, int]] = {}

    def ask(self, request: FetchRequest) -> asyncio.Future[FetchResponse]:
        context = RequestContext(FETCH_VERSION_MIN, "test", Peer("here", 1))
        answer: Coroutine[Any, Any, Any] = settled(self.handler.handle(request, context))
        return asyncio.ensure_future(answer)

    async def follow(
        self, follower: BrokerId, offset: int | None = None
    ) -> asyncio.Future[FetchResponse]:
        """A follower's next fetch in its session, on its way; without an offset, nothing moved."""
        session_id, session_epoch = self.sessions.get(follower, (0, 0))
        asked = self.ask(
            FetchRequest(
                replica_state=ReplicaState(follower),
                max_wait_ms=500,
                min_bytes=1,
                session_id=session_id,
                session_epoch=session_epoch,
                topics=[] if offset is None else [_wanted(offset)],
            )
        )
        await turns(3)
        if asked.done() and not session_id:
            self.sessions[follower] = (asked.result().session_id, 1)
        elif session_id:
            self.sessions[follower] = (session_id, session_epoch + 1)
        return asked

    async def consume(self, offset: int, *, rack: str = "") -> PartitionData:
        response = await self.ask(FetchRequest(rack_id=rack, topics=[_wanted(offset)]))
        return _only(response)


def _wanted(offset: int) -> FetchTopic:
    return FetchTopic(
        topic_id=TOPIC_ID,
        partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)],
    )


def _only(response: FetchResponse) -> PartitionData:
    return response.responses[0].partitions[0]


def a_leader(**changes: Any) -> Stage:
    return Stage(an_image(ME, replicas=ALL), **changes)


# --- followers hear of high watermarks ---


async def both_have_one_record(fetching: Fetching) -> asyncio.Future[FetchResponse]:
    """Two followers have the only record; two's next fetch waits, told of no watermark yet."""
    fetching.stage.append(b"a")
    await fetching.follow(TWO, 0)
    await fetching.follow(THREE, 0)
    waiting = await fetching.follow(TWO, 1)
    assert not waiting.done()
    await fetching.follow(THREE, 1)
    assert fetching.stage.high_watermark == 1
    return waiting


def test_an_idle_follower_hears_of_a_new_high_watermark_soon() -> None:
    async def scenario() -> None:
        waiting = await both_have_one_record(Fetching(a_leader()))
        assert not waiting.done(), "the next records would tell it"
        await pass_time(WATERMARK_SECONDS_MAX)
        assert _only(waiting.result()).high_watermark == 1

    run(scenario())


def test_where_consumers_read_from_followers_they_hear_of_it_at_once() -> None:
    async def scenario() -> None:
        waiting = await both_have_one_record(Fetching(a_leader(), FROM_FOLLOWERS))
        assert _only(waiting.result()).high_watermark == 1

    run(scenario())


def test_a_follower_that_knows_all_waits() -> None:
    async def scenario() -> None:
        fetching = Fetching(a_leader())
        waiting = await both_have_one_record(fetching)
        await pass_time(WATERMARK_SECONDS_MAX)
        assert waiting.done()
        again = await fetching.follow(TWO, 1)
        await pass_time(4 * WATERMARK_SECONDS_MAX)
        assert not again.done()
        await pass_time(0.5)
        assert again.done()

    run(scenario())


# --- followers at rest ---


async def two_rests(**changes: Any) -> Fetching:
    """Both followers have the only record, and two has been told all of it."""
    fetching = Fetching(a_leader(**changes))
    waiting = await both_have_one_record(fetching)
    await pass_time(WATERMARK_SECONDS_MAX)
    assert waiting.done()
    told = await fetching.follow(TWO)
    await pass_time(0.5)
    assert told.result().responses == []
    return fetching


def watches(fetching: Fetching) -> int:
    return len(fetching.stage.partition._watches)


def a_reader_of(fetching: Fetching, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets at which the log is read from now on."""
    offsets: list[int] = []
    log = fetching.stage.partition.log
    read = type(log).read

    def noting(self: Any, offset: int, **limits: Any) -> Any:
        offsets.append(offset)
        return read(self, offset, **limits)

    monkeypatch.setattr(type(log), "read", noting)
    return offsets


def test_nothing_is_read_for_a_follower_that_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        offsets = a_reader_of(fetching, monkeypatch)
        waiting = await fetching.follow(TWO)
        await turns()
        assert not waiting.done()
        assert offsets == []
        fetching.stage.append(b"b")
        await turns()
        assert _only(waiting.result()).records
        assert offsets == [1]

    run(scenario())


def test_a_record_that_came_between_two_fetches_is_in_the_next_one() -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        fetching.stage.append(b"b")
        waiting = await fetching.follow(TWO)
        assert _only(waiting.result()).records

    run(scenario())


def test_a_follower_at_rest_kept_up_for_as_long_as_it_asked() -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        fetching.stage.clock.ms += 10 * LAG_MS
        await fetching.follow(TWO)
        fetching.stage.append(b"b")
        fetching.stage.partition.drop_laggards()
        assert fetching.stage.wishes.asked == [frozenset({ME, TWO})], "three has not asked since"

    run(scenario())


def test_a_follower_that_stopped_asking_at_rest_lags_as_any_other() -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        fetching.stage.clock.ms += LAG_MS + 1
        fetching.stage.append(b"b")
        fetching.stage.partition.drop_laggards()
        assert fetching.stage.wishes.asked == [frozenset({ME})]

    run(scenario())


def test_a_follower_at_rest_that_was_taken_out_has_to_show_itself() -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        partition = fetching.stage.partition
        partition.take_role(an_image(ME, replicas=ALL, isr=(ME, THREE), partition_epoch=1))
        assert partition.in_sync is not None
        assert partition.in_sync.followers[TWO].caught_up_ms == 0, "no commit waits for it"
        await fetching.follow(TWO)
        assert fetching.stage.wishes.asked == [frozenset(ALL)], "and it is asked back in"

    run(scenario())


def test_a_follower_at_rest_hears_that_the_log_begins_later_and_who_leads() -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        partition = fetching.stage.partition
        waiting = await fetching.follow(TWO)
        partition.log.delete_records_before(Offset(1))
        partition.start_moved()
        await pass_time(0.5)
        assert _only(waiting.result()).log_start_offset == 1
        waiting = await fetching.follow(TWO)
        partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
        await turns()
        assert _only(waiting.result()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario())


def test_a_new_session_of_a_follower_ends_the_rests_of_the_old_one() -> None:
    async def scenario() -> None:
        fetching = await two_rests()
        assert watches(fetching) == 2, "three rests too"
        del fetching.sessions[TWO]
        waiting = await fetching.follow(TWO, 0)
        assert waiting.done()
        assert watches(fetching) == 1

    run(scenario())


# --- consumers and racks ---


async def a_led_partition(settings: ReplicationSettings) -> Fetching:
    """Two has both committed records, three only the first."""
    fetching = Fetching(a_leader(), settings)
    fetching.stage.append(b"a")
    fetching.stage.append(b"b")
    fetching.stage.partition.fetched_by(TWO, Offset(2))
    fetching.stage.partition.fetched_by(THREE, Offset(1))
    return fetching


def test_a_consumer_is_sent_to_the_replica_in_its_rack_that_has_most() -> None:
    async def scenario() -> None:
        fetching = await a_led_partition(FROM_FOLLOWERS)
        sent = await fetching.consume(0, rack="south")
        assert (sent.preferred_read_replica, sent.records) == (TWO, b"")
        for rack in ("north", "west", ""):
            stays = await fetching.consume(0, rack=rack)
            assert stays.preferred_read_replica == -1
            assert stays.records

    run(scenario())


def test_without_a_selector_everybody_reads_from_the_leader() -> None:
    async def scenario() -> None:
        fetching = await a_led_partition(ReplicationSettings())
        stays = await fetching.consume(0, rack="south")
        assert stays.preferred_read_replica == -1
        assert stays.records

    run(scenario())


def test_nobody_is_sent_to_a_replica_that_is_not_in_sync_or_lacks_the_offset() -> None:
    async def scenario() -> None:
        fetching = Fetching(Stage(an_image(ME, replicas=ALL, isr=(ME, THREE))), FROM_FOLLOWERS)
        fetching.stage.append(b"a")
        fetching.stage.partition.fetched_by(TWO, Offset(1))
        stays = await fetching.consume(0, rack="south")
        assert stays.preferred_read_replica == -1
        fetching.stage.partition.fetched_by(THREE, Offset(0))
        assert (await fetching.consume(0, rack="south")).preferred_read_replica == THREE
        assert (await fetching.consume(1, rack="south")).preferred_read_replica == -1

    run(scenario())


@pytest.mark.parametrize(
    ("settings", "rack", "code"),
    [
        (FROM_FOLLOWERS, "south", ErrorCode.NONE),
        (FROM_FOLLOWERS, "", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ReplicationSettings(), "south", ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_follower_serves_readers_of_its_rack_only_where_that_is_on(
    settings: ReplicationSettings, rack: str, code: ErrorCode
) -> None:
    async def scenario() -> None:
        stage = a_leader()
        stage.append(b"a")
        stage.append(b"b")
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
        stage.partition.follow_watermarks(Offset(1), Offset(0))
        fetching = Fetching(stage, settings)
        read = await fetching.consume(0, rack=rack)
        assert read.error_code == code
        if code is ErrorCode.NONE:
            assert read.high_watermark == 1
            assert read.records
            assert not (await fetching.consume(1, rack=rack)).records, "it is not committed"

    run(scenario())


def test_a_reader_that_waits_at_a_follower_is_woken_by_the_watermark() -> None:
    async def scenario() -> None:
        stage = a_leader()
        stage.append(b"a")
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=ALL))
        fetching = Fetching(stage, FROM_FOLLOWERS)
        asked = fetching.ask(
            FetchRequest(rack_id="south", max_wait_ms=5000, min_bytes=1, topics=[_wanted(0)])
        )
        await turns()
        assert not asked.done()
        stage.partition.follow_watermarks(Offset(1), Offset(0))
        await turns()
        assert _only(asked.result()).records

    run(scenario())


# --- throttled replicas ---


def test_a_throttled_follower_gets_nothing_while_the_rate_is_used_up_unless_it_is_in_sync() -> None:
    async def scenario() -> None:
        stage = Stage(
            an_image(ME, replicas=ALL, isr=(ME, TWO)),
            leader_replication_throttled_replicas=("0:1",),
        )
        fetching = Fetching(stage, ReplicationSettings(leader_replication_throttled_rate=10))
        stage.append(b"a")
        stage.partition.fetched_by(TWO, Offset(1))
        first = await fetching.follow(THREE, 0)
        assert _only(first.result()).records, "a second's worth may be overdrawn"
        held = await fetching.follow(THREE, 0)
        assert not held.done()
        in_sync = await fetching.follow(TWO, 0)
        assert _only(in_sync.result()).records
        stage.clock.ms += 60_000
        await pass_time(0.5)
        assert _only(held.result()).records

    run(scenario())
