"""Runs one coordinator shard on one partition: carries out what it decides, in order.

Invariants:
1. A decision's records are appended as one batch and replayed at once; nothing comes in between.
2. Replies, and what else rests on a decision, wait until everything the shard has written so far
   is committed.
3. Every request gets exactly one answer, unless its client has gone.
4. A shard lives as long as one leader epoch on one log. In another epoch nothing of it is written,
   and nobody is answered from its state.
5. Nothing is answered before the log, as it was when the epoch began, is replayed and committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from ottla.broker.partition import Partition
from ottla.broker.shard_timers import ShardTimers
from ottla.broker.skipped_records import SkippedRecords
from ottla.coordination.decision import (
    NewRecord,
    Reply,
    Ticket,
    TimerChange,
    TimerKey,
)
from ottla.errors import ErrorCode, OttlaError, RecordError, RequestFailed, TimedOut
from ottla.model.clock import Clock
from ottla.model.ids import Offset
from ottla.net.turns import Turns
from ottla.protocol.message import Message
from ottla.records.batch import RecordBatch, split
from ottla.records.builder import NO_PRODUCER, BatchBuilder, ProducerStamp
from ottla.storage.disk import read_region
from ottla.storage.producer_state import Origin

COMMIT_SECONDS_MAX: Final = 5.0
"""How long an answer waits for the replicas unless a coordinator has another limit."""
LOAD_BYTES_PER_READ: Final = 256 * 1024

T = TypeVar("T")

log = logging.getLogger(__name__)


class Decided(Protocol):
    """What every decision has; the kind of a transaction's has more."""

    @property
    def records(self) -> tuple[NewRecord, ...]: ...

    @property
    def replies(self) -> tuple[Reply, ...]: ...

    @property
    def timers(self) -> tuple[TimerChange, ...]: ...


class Shard(Protocol):
    """The state machine behind a runtime, with differences between kinds taken away."""

    def replay_batch(self, batch: RecordBatch, skipped: SkippedRecords) -> None:
        """Takes over a batch of the log, but for the records in it that cannot be read."""
        ...

    def replay(self, record: NewRecord, producer: ProducerStamp) -> None: ...

    def append_failed(self, decision: Any, code: ErrorCode) -> Any: ...

    def timer_fired(self, key: TimerKey, now_ms: int) -> Any: ...

    def loaded(self, now_ms: int) -> Any: ...

    def forget(self, ticket: Ticket, now_ms: int) -> Any: ...

    def committed(self, decision: Any, runtime: ShardRuntime) -> None:
        """What rests on the decision beside its replies may happen now."""
        ...


class ShardRuntime:
    """One shard, its log and those who wait for it."""

    def __init__(
        self,
        partition: Partition,
        shard: Shard,
        clock: Clock,
        *,
        commit_seconds_max: float = COMMIT_SECONDS_MAX,
        turns: Turns | None = None,
    ) -> None:
        self._turns = turns or Turns()
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._log = partition.log
        self._shard = shard
        self._clock = clock
        self._commit_seconds_max = commit_seconds_max
        self._is_loaded = False
        self._is_closed = False
        self._last_ticket = 0
        self._waiting: dict[Ticket, asyncio.Future[Message]] = {}
        self._timers = ShardTimers(self._fire)
        self._commits: set[asyncio.Task[None]] = set()
        self._skipped = SkippedRecords()

    @property
    def is_current(self) -> bool:
        """Whether the shard speaks for its partition: this broker leads it, in the same epoch, and
        the log was not opened anew, perhaps without its tail."""
        partition = self._partition
        return (
            not self._is_closed
            and partition.leader_epoch == self._leader_epoch
            and partition.log is self._log
            and partition.leads_for_certain
        )

    @property
    def is_closed(self) -> bool:
        """Whether the shard was dropped, for good."""
        return self._is_closed

    @property
    def is_ready(self) -> bool:
        """Whether the shard can be asked."""
        return self._is_loaded and self.is_current

    def runs_on(self, partition: Partition | None) -> bool:
        """Whether the shard speaks for this very partition."""
        return partition is self._partition and self.is_current

    def check_ready(self) -> None:
        """Refuses while the log is being read, or after the partition has gone."""
        if not self.is_current:
            raise RequestFailed(ErrorCode.NOT_COORDINATOR)
        if not self._is_loaded:
            raise RequestFailed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    async def ask(
        self, decide: Callable[[Ticket, int], Any], producer: ProducerStamp = NO_PRODUCER
    ) -> Message:
        """Lets the shard decide on a request and returns its answer, perhaps much later."""
        outcome = self.answer(decide, producer)
        return outcome if isinstance(outcome, Message) else await outcome

    def answer(
        self, decide: Callable[[Ticket, int], Any], producer: ProducerStamp = NO_PRODUCER
    ) -> Message | Coroutine[Any, Any, Message]:
        """The same; the answer itself where it is known at once."""
        self.check_ready()
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        self.carry_out(decide(ticket, self._clock.now_ms()), producer)
        return future.result() if future.done() else self._answered(ticket, future)

    async def _answered(self, ticket: Ticket, future: asyncio.Future[Message]) -> Message:
        try:
            return await future
        except asyncio.CancelledError:
            if self._waiting.pop(ticket, None) is not None and not self._is_closed:
                self.carry_out(self._shard.forget(ticket, self._clock.now_ms()))
            raise

    async def read(self, look: Callable[[], T]) -> T:
        """What `look` finds now, once nothing of it can be lost any more."""
        self.check_ready()
        found = look()
        end_offset = self._log.end_offset
        if not self._partition.is_committed(end_offset):
            deadline = asyncio.get_running_loop().time() + self._commit_seconds_max
            try:
                await self._partition.wait_committed(end_offset, deadline)
            except OttlaError as error:
                raise RequestFailed(_told(error)) from error
        return found

    def carry_out(self, decision: Any, producer: ProducerStamp = NO_PRODUCER) -> bool:
        """Writes, replays, sets timers, and answers once all of it is committed.

        False where the decision could not be written; then what the shard made of that was done.
        """
        if self._is_closed:
            return False
        if decision.records:
            try:
                self._append(decision.records, producer)
            except OttlaError as error:
                log.warning("%s: a decision was not written: %s", self._partition.id, error)
                self.carry_out(self._shard.append_failed(decision, error.code))
                return False
            for record in decision.records:
                self._shard.replay(record, producer)
        for change in decision.timers:
            self._timers.change(change)
        end_offset = self._log.end_offset
        if self._partition.is_committed(end_offset):
            self._conclude(decision)
            return True
        committed = self._committed(end_offset)
        task = asyncio.get_running_loop().create_task(
            self._conclude_later(decision, end_offset, committed)
        )
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
        return True

    async def load(self) -> None:
        """Replays the whole log, giving way to clients in between."""
        try:
            await self._replay_log()
        except (OttlaError, OSError) as error:
            if self.is_current:
                log.error("%s cannot be loaded: %s", self._partition.id, error)
            return
        if self._skipped:
            log.error("%s: %s", self._partition.id, self._skipped)
        if self.is_current:
            self._is_loaded = True
            self.carry_out(self._shard.loaded(self._clock.now_ms()))

    def close(self) -> None:
        """Another broker, or none, coordinates from now on."""
        self._is_closed = True
        self._timers.stop()
        for task in tuple(self._commits):
            task.cancel()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(RequestFailed(ErrorCode.NOT_COORDINATOR))
        self._waiting.clear()

    async def _replay_log(self) -> None:
        first_end_offset = self._log.end_offset
        offset = await self._replay_from(self._log.start_offset)
        # What a leader before this one wrote may not be on enough replicas: it could still be lost.
        while self.is_current and not self._partition.is_committed(first_end_offset):
            try:
                await self._committed(first_end_offset)
            except TimedOut:
                log.warning("%s waits for its replicas before it is used", self._partition.id)
        # A transaction may have been ended in this log meanwhile.
        await self._replay_from(offset)

    async def _replay_from(self, offset: Offset) -> Offset:
        """Replays what there is; between the last record and the return nobody has a turn."""
        source = self._log
        turn = self._turns.begin()
        while offset < (end := source.end_offset) and self.is_current:
            region = source.read(offset, bytes_max=LOAD_BYTES_PER_READ, end=end)
            if region is None:
                break
            for batch in split(memoryview(read_region(region)), ignore_torn_tail=True):
                self._replay_batch(batch)
                offset = Offset(batch.next_offset)
                # All shards of a broker load at once: without a line they would hold the loop for
                # the sum of their turns, and its session with the metadata store might end.
                if turn.is_over:
                    await turn.give_way()
                    if not self.is_current:
                        return offset
            await turn.give_way()
        return offset

    def _replay_batch(self, batch: RecordBatch) -> None:
        try:
            self._shard.replay_batch(batch, self._skipped)
        except RecordError as error:  # its records cannot even be told apart
            self._skipped.add(batch.base_offset, error, batch.record_count)

    def _append(self, records: tuple[NewRecord, ...], producer: ProducerStamp) -> None:
        if not self.is_current:
            raise RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._partition.check_in_sync()
        builder = BatchBuilder()
        now_ms = self._clock.now_ms()
        for record in records:
            builder.append(now_ms, record.key, record.value)
        batch = memoryview(builder.build(producer=producer))
        self._partition.append(batch, origin=Origin.COORDINATOR)

    def _committed(self, end_offset: Offset) -> asyncio.Future[None]:
        deadline = asyncio.get_running_loop().time() + self._commit_seconds_max
        return self._partition.committed(end_offset, deadline)

    async def _conclude_later(
        self, decision: Decided, end_offset: Offset, committed: asyncio.Future[None]
    ) -> None:
        while True:
            try:
                await committed
            except OttlaError as error:
                log.warning("%s: a decision is not committed: %s", self._partition.id, error)
                self._fail(decision, _told(error))
                if not isinstance(error, TimedOut) or not self.is_current:
                    return
                # Nobody waits any more, but the decision stands, and what rests on it must follow.
                committed = self._committed(end_offset)
            else:
                self._conclude(decision)
                return

    def _fail(self, decision: Decided, code: ErrorCode) -> None:
        for reply in decision.replies:
            future = self._waiting.pop(reply.ticket, None)
            if future is not None and not future.done():
                future.set_exception(RequestFailed(code))

    def _conclude(self, decision: Decided) -> None:
        for reply in decision.replies:
            future = self._waiting.pop(reply.ticket, None)
            if future is not None and not future.done():
                future.set_result(reply.response)
        self._shard.committed(decision, self)

    def _fire(self, key: TimerKey) -> None:
        self.carry_out(self._shard.timer_fired(key, self._clock.now_ms()))


def _told(error: OttlaError) -> ErrorCode:
    """What clients are told when a decision is not committed: to ask again, or elsewhere."""
    if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
