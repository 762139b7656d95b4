"""A shard's decisions are written, replayed, and answered when they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.shard_runtime import COMMIT_SECONDS_MAX, ShardRuntime
from ottla.broker.skipped_records import SkippedRecords
from ottla.coordination.decision import (
    NOTHING,
    Decision,
    NewRecord,
    Reply,
    StartTimer,
    StopTimer,
    Ticket,
    TimerKey,
)
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import BrokerId, Offset
from ottla.protocol.message import Message
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp
from unit.broker.stage import ME, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns
from unit.storage.logs import keyed

BOTH = (ME, TWO)
YES = HeartbeatResponse()
TIMER: TimerKey = ("session", "member")


class Ledger:
    """A shard that keeps what happens to it, and decides as the test says."""

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.events: list[str] = []
        self.on_loaded: Decision = NOTHING
        self.on_timer: Decision = NOTHING
        self.failed_reply: Callable[[Decision, ErrorCode], Decision] = lambda *_: NOTHING

    def replay_batch(self, batch: RecordBatch, skipped: SkippedRecords) -> None:
        del skipped
        self.keys += [record.key for record in batch.records()]

    def replay(self, record: NewRecord, producer: ProducerStamp) -> None:
        del producer
        self.keys.append(record.key)

    def append_failed(self, decision: Decision, code: ErrorCode) -> Decision:
        self.events.append(f"append failed {code.name}")
        return self.failed_reply(decision, code)

    def timer_fired(self, key: TimerKey, now_ms: int) -> Decision:
        del now_ms
        self.events.append(f"fired {key[1]}")
        return self.on_timer

    def loaded(self, now_ms: int) -> Decision:
        del now_ms
        self.events.append("loaded")
        return self.on_loaded

    def forget(self, ticket: Ticket, now_ms: int) -> Decision:
        del now_ms
        self.events.append(f"forgot {ticket}")
        return NOTHING

    def committed(self, decision: Decision, runtime: ShardRuntime) -> None:
        del runtime
        self.events.append(f"committed {len(decision.records)}")


async def a_runtime(stage: Stage) -> tuple[ShardRuntime, Ledger]:
    ledger = Ledger()
    runtime = ShardRuntime(stage.partition, ledger, stage.clock)
    await runtime.load()
    ledger.events.clear()
    return runtime, ledger


def writing(*keys: bytes, **more: Any) -> Callable[[Ticket, int], Decision]:
    def decide(ticket: Ticket, _now_ms: int) -> Decision:
        records = tuple(NewRecord(key, b"") for key in keys)
        return Decision(records, (Reply(ticket, YES),), **more)

    return decide


async def code_of(asking: asyncio.Task[Message]) -> ErrorCode:
    with pytest.raises(RequestFailed) as caught:
        await asking
    return caught.value.code


def test_a_decision_alone_on_its_broker_is_answered_at_once() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        runtime, ledger = await a_runtime(stage)
        assert await runtime.ask(writing(b"a", b"b")) is YES
        assert ledger.keys == [b"a", b"b"]
        assert stage.partition.log.end_offset == 2

    run(scenario())


def test_an_answer_waits_for_all_that_was_written_so_far() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        runtime, ledger = await a_runtime(stage)
        first = asyncio.ensure_future(runtime.ask(writing(b"a")))
        await turns()
        reading = asyncio.ensure_future(runtime.ask(writing()))
        await turns()
        assert ledger.keys == [b"a"], "it counts for the next decision at once"
        assert not first.done()
        assert not reading.done(), "it may rest on what can still be lost"
        stage.partition.fetched_by(TWO, Offset(1))
        assert await first is YES
        assert await reading is YES
        assert ledger.events == ["committed 1", "committed 0"]

    run(scenario())


def test_a_decision_that_cannot_be_written_is_not_replayed_and_the_shard_says_what_then() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH), min_insync_replicas=2)
        runtime, ledger = await a_runtime(stage)
        failed = HeartbeatResponse(error_code=15)
        ledger.failed_reply = lambda decision, _code: Decision(
            replies=tuple(Reply(reply.ticket, failed) for reply in decision.replies)
        )
        stage.partition.take_role(an_image(ME, replicas=BOTH, isr=(ME,), partition_epoch=1))
        assert await runtime.ask(writing(b"a")) is failed
        assert ledger.keys == []
        assert ledger.events[0] == "append failed NOT_ENOUGH_REPLICAS"
        assert stage.partition.log.end_offset == 0

    run(scenario())


@pytest.mark.parametrize("is_late", [True, False])
def test_a_decision_that_is_not_committed_is_answered_with_an_error(is_late: bool) -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        runtime, ledger = await a_runtime(stage)
        asking = asyncio.ensure_future(runtime.ask(writing(b"a")))
        await turns()
        if is_late:
            await pass_time(COMMIT_SECONDS_MAX + 1)
            assert await code_of(asking) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            stage.partition.take_role(an_image(TWO, epoch=1, replicas=BOTH))
            assert await code_of(asking) is ErrorCode.NOT_COORDINATOR
        assert ledger.events == []

    run(scenario())


def test_a_deposition_in_the_very_turn_of_a_decision_is_heard() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        runtime, _ = await a_runtime(stage)
        asking = asyncio.ensure_future(runtime.ask(writing(b"a")))
        await asyncio.sleep(0)
        assert stage.partition.log.end_offset == 1
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=BOTH))
        await turns()
        assert asking.done()
        assert await code_of(asking) is ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_a_client_that_goes_away_is_forgotten_by_the_shard() -> None:
    async def scenario() -> None:
        runtime, ledger = await a_runtime(Stage(an_image(ME)))
        asking = asyncio.ensure_future(runtime.ask(lambda _ticket, _now_ms: NOTHING))
        await turns()
        asking.cancel()
        await turns()
        assert ledger.events == ["committed 0", "forgot 1", "committed 0"]

    run(scenario())


def test_nothing_is_asked_of_a_shard_before_it_is_loaded_or_after_it_is_closed() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        runtime = ShardRuntime(stage.partition, Ledger(), stage.clock)
        asking = asyncio.ensure_future(runtime.ask(writing()))
        assert await code_of(asking) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await runtime.load()
        waiting = asyncio.ensure_future(runtime.ask(lambda _ticket, _now_ms: NOTHING))
        await turns()
        runtime.close()
        assert await code_of(waiting) is ErrorCode.NOT_COORDINATOR
        asking = asyncio.ensure_future(runtime.ask(writing()))
        assert await code_of(asking) is ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_loading_replays_the_log_and_what_comes_to_it_meanwhile() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        for key in (b"a", b"b"):
            stage.partition.append(keyed((key, b"")))
        ledger = Ledger()
        ledger.on_loaded = Decision((NewRecord(b"d", b""),))
        runtime = ShardRuntime(stage.partition, ledger, stage.clock)
        loading = asyncio.ensure_future(runtime.load())
        await asyncio.sleep(0)
        assert not runtime.is_ready
        stage.partition.append(keyed((b"c", b"")))
        await loading
        assert runtime.is_ready
        assert ledger.keys == [b"a", b"b", b"c", b"d"]
        assert ledger.events == ["loaded", "committed 1"]

    run(scenario())


def test_what_rests_on_a_decision_follows_when_it_is_committed_after_all() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        runtime, ledger = await a_runtime(stage)
        asking = asyncio.ensure_future(runtime.ask(writing(b"a")))
        await turns()
        for _ in range(3):
            await pass_time(COMMIT_SECONDS_MAX + 1)
        assert await code_of(asking) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert ledger.events == []
        stage.partition.fetched_by(TWO, Offset(1))
        await turns()
        assert ledger.events == ["committed 1"], "markers are waiting for it"

    run(scenario())


def test_nothing_is_written_or_answered_in_another_leader_epoch() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        runtime, ledger = await a_runtime(stage)
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=BOTH))
        stage.partition.take_role(an_image(ME, epoch=2, replicas=BOTH))
        asking = asyncio.ensure_future(runtime.ask(writing(b"a")))
        assert await code_of(asking) is ErrorCode.NOT_COORDINATOR
        with pytest.raises(RequestFailed):
            await runtime.read(lambda: ledger.keys)
        assert not runtime.carry_out(writing(b"a")(Ticket(1), 0))
        assert ledger.events[0] == "append failed NOT_LEADER_OR_FOLLOWER"
        assert stage.partition.log.end_offset == 0

    run(scenario())


def test_a_fenced_broker_coordinates_nothing() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME))
        runtime, _ = await a_runtime(stage)
        stage.standing.is_registered = False
        assert not runtime.is_ready
        asking = asyncio.ensure_future(runtime.ask(writing(b"a")))
        assert await code_of(asking) is ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_what_is_read_cannot_be_lost_any_more() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        runtime, ledger = await a_runtime(stage)
        runtime.carry_out(Decision((NewRecord(b"a", b""),)))
        reading = asyncio.ensure_future(runtime.read(lambda: list(ledger.keys)))
        late = asyncio.ensure_future(runtime.read(lambda: list(ledger.keys)))
        await turns()
        assert not reading.done()
        stage.partition.fetched_by(TWO, Offset(1))
        assert await reading == await late == [b"a"]
        runtime.carry_out(Decision((NewRecord(b"b", b""),)))
        reading = asyncio.ensure_future(runtime.read(lambda: list(ledger.keys)))
        await turns()
        await pass_time(COMMIT_SECONDS_MAX + 1)
        with pytest.raises(RequestFailed) as caught:
            await reading
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario())


def test_a_shard_is_loaded_only_when_what_it_found_is_committed() -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=BOTH))
        stage.partition.append(keyed((b"a", b"")))
        ledger = Ledger()
        runtime = ShardRuntime(stage.partition, ledger, stage.clock)
        loading = asyncio.ensure_future(runtime.load())
        await turns()
        await pass_time(2 * COMMIT_SECONDS_MAX)
        assert ledger.keys == [b"a"]
        assert not runtime.is_ready, "a former leader's record may be on this broker alone"
        stage.partition.append(keyed((b"b", b"")))
        stage.partition.fetched_by(TWO, Offset(1))
        await loading
        assert runtime.is_ready
        assert ledger.keys == [b"a", b"b"]

    run(scenario())


@pytest.mark.parametrize("replicas", [BOTH, (ME,)])
def test_a_load_that_is_overtaken_by_another_epoch_is_given_up(
    replicas: tuple[BrokerId, ...],
) -> None:
    async def scenario() -> None:
        stage = Stage(an_image(ME, replicas=replicas))
        stage.partition.append(keyed((b"a", b"")))
        ledger = Ledger()
        runtime = ShardRuntime(stage.partition, ledger, stage.clock)
        loading = asyncio.ensure_future(runtime.load())
        await asyncio.sleep(0)
        stage.partition.take_role(an_image(TWO, epoch=1, replicas=BOTH))
        stage.partition.take_role(an_image(ME, epoch=2, replicas=replicas))
        await loading
        assert not runtime.is_ready
        assert ledger.events == []

    run(scenario())


def test_timers_fire_once_and_can_be_stopped_and_set_anew() -> None:
    async def scenario() -> None:
        runtime, ledger = await a_runtime(Stage(an_image(ME)))
        other: TimerKey = ("session", "other")
        runtime.carry_out(Decision(timers=(StartTimer(TIMER, 5_000), StartTimer(other, 5_000))))
        await pass_time(4)
        runtime.carry_out(Decision(timers=(StartTimer(TIMER, 5_000), StopTimer(other))))
        ledger.events.clear()
        await pass_time(4)
        assert ledger.events == []
        ledger.on_timer = Decision((NewRecord(b"expired", b""),))
        await pass_time(2)
        assert ledger.events == ["fired member", "committed 1"]
        assert ledger.keys == [b"expired"]
        await pass_time(20)
        assert ledger.events.count("fired member") == 1

    run(scenario())


def test_timers_of_a_closed_shard_do_not_fire() -> None:
    async def scenario() -> None:
        runtime, ledger = await a_runtime(Stage(an_image(ME)))
        runtime.carry_out(Decision(timers=(StartTimer(TIMER, 5_000),)))
        runtime.close()
        runtime.carry_out(Decision(timers=(StartTimer(TIMER, 5_000),)))
        ledger.events.clear()
        await pass_time(20)
        assert ledger.events == []

    run(scenario())
