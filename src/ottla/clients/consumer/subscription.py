"""What a consumer reads: the partitions it has, how far it is in each, what was fetched ahead.

Two sides meet here: the loop fetches, the caller takes. Whoever changes a partition's place or its
chunks holds the lock, for a moment.

Invariants:
1. `position` is the next offset a poll returns; `fetch_offset`, never smaller, the next to ask for.
   What lies between is in the batch that was begun and in `chunks`, in order.
2. Whatever moves the position other than a poll raises `version`: answers to questions of an
   older version are dropped.
3. Nothing passes over what cannot be read but `skip` and `move_to`: the position stays before it,
   and taking raises there.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Final

from ottla.clients.consumer.record import ConsumerRecord, Decoding, decode_batch, deserialize
from ottla.clients.consumer.unreadable import (
    UNREADABLE,
    Unreadable,
    UnreadableBatch,
    unreadable_batch,
)
from ottla.clients.failures import WrongUse
from ottla.errors import CorruptBatch
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction
from ottla.records.batch import RecordBatch

UNKNOWN: Final = -1
_ABORT_MARKER: Final = 0


@dataclass(frozen=True, slots=True)
class SubscriptionPattern:
    """A pattern of topic names that the broker matches, in the syntax of RE2.

    For groups of the consumer protocol: no member need know all topics of the cluster.
    """

    text: str


@dataclass(frozen=True, slots=True)
class TakenBatches:
    """Batches of one partition whose records in [start, end) were taken, and no others."""

    where: TopicPartition
    start: int
    end: int
    batches: list[RecordBatch]
    record_count: int
    """At most so many: where compaction left gaps, fewer."""
    size_bytes: int


Wanted = Iterable[str] | re.Pattern[str] | SubscriptionPattern
"""Topics by name, by a pattern matched here, or by one that the broker matches."""


class Chunk:
    """The batches of one partition in one answer, not decoded yet."""

    __slots__ = ("_batches", "_dropped", "_next", "_starts", "size_bytes")

    def __init__(
        self, batches: list[RecordBatch], aborted: Iterable[AbortedTransaction], size_bytes: int
    ) -> None:
        self._batches = batches
        self._next = 0
        self._starts = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._dropped: set[int] = set()
        self.size_bytes = size_bytes

    def next_batch(self) -> RecordBatch | None:
        """The next batch, without those of aborted transactions and markers; None at the end."""
        while (batch := self.head) is not None:
            while self._starts and self._starts[-1].first_offset <= batch.last_offset:
                self._dropped.add(self._starts.pop().producer_id)
            if batch.is_control:
                self._end_transaction(batch)  # a damaged one raises, and is not passed over
            self._next += 1
            is_dropped = batch.is_transactional and batch.producer_id in self._dropped
            if not (batch.is_control or is_dropped):
                return batch
        return None

    @property
    def head(self) -> RecordBatch | None:
        """The batch that is next, whatever it is."""
        return self._batches[self._next] if self._next < len(self._batches) else None

    def _end_transaction(self, batch: RecordBatch) -> None:
        if not batch.is_intact():
            raise CorruptBatch(f"the marker at offset {batch.base_offset} arrived damaged")
        try:
            markers = list(batch.records())
        except Exception as error:  # whatever damaged bytes make of a decoder
            raise CorruptBatch(f"the marker at offset {batch.base_offset}: {error}") from error
        for marker in markers:
            if marker.key is not None and int.from_bytes(marker.key[2:4], "big") == _ABORT_MARKER:
                self._dropped.discard(batch.producer_id)

    @property
    def end_offset(self) -> int:
        """After its last batch."""
        return self._batches[-1].next_offset


class PartitionState:
    """One partition that is read."""

    __slots__ = (
        "_begun",
        "_decoded",
        "_decoded_at",
        "_decoded_end",
        "_stuck_at",
        "buffered_bytes",
        "chunks",
        "damage",
        "end_offset",
        "fetch_offset",
        "high_watermark",
        "is_looked_up",
        "is_paused",
        "leader_epoch",
        "log_start",
        "needs_validation",
        "not_before",
        "position",
        "position_epoch",
        "preferred",
        "preferred_until",
        "reset_to",
        "version",
        "where",
    )

    def __init__(self, where: TopicPartition) -> None:
        self.where = where
        self.position = UNKNOWN
        self.position_epoch = UNKNOWN
        """The leader epoch of the last record before the position."""
        self.fetch_offset = UNKNOWN
        self.version = 0
        self.is_paused = False
        self.is_looked_up = False
        """Whether the committed offset was asked for, and there is none."""
        self.reset_to: str | None = None
        """A policy to find a position by, ordered by the user or by an offset out of range."""
        self.needs_validation = False
        self.leader_epoch = UNKNOWN
        self.not_before = 0.0
        self.preferred: BrokerId | None = None
        self.preferred_until = 0.0
        self.high_watermark = UNKNOWN
        self.end_offset = UNKNOWN
        """How far a reader may read: the high watermark, or the last stable offset."""
        self.log_start = UNKNOWN
        self.chunks: deque[Chunk] = deque()
        self.buffered_bytes = 0
        self._begun: RecordBatch | None = None
        """The batch that is being read: not all of its records were taken."""
        self.damage: UnreadableBatch | None = None
        """What stands behind the chunks; nothing more is fetched until somebody moves on."""
        self._stuck_at = UNKNOWN
        """The offset of what could not be read when it was last tried."""
        self._decoded: list[ConsumerRecord] = []
        """Records of the batch that is being read, not deserialized."""
        self._decoded_at = 0
        self._decoded_end = UNKNOWN

    def move_to(self, offset: int, epoch: int = UNKNOWN) -> None:
        """Goes on from another offset; what was fetched ahead is forgotten."""
        self.version += 1
        self.position = self.fetch_offset = offset
        self.position_epoch = epoch
        self.reset_to = None
        self.needs_validation = False
        self.preferred = None
        self.chunks.clear()
        self.buffered_bytes = 0
        self._begun = None
        self.damage = None
        self._stuck_at = UNKNOWN
        self._decoded = []
        self._decoded_at = 0

    @property
    def has_records(self) -> bool:
        """Whether a poll may find something here, or something that cannot be read."""
        return bool(self.chunks) or self._begun is not None or self.damage is not None

    @property
    def lag(self) -> int | None:
        """Offsets between the position and the end; None while either is unknown."""
        if self.position < 0 or self.end_offset < 0:
            return None
        return max(0, self.end_offset - self.position)

    def take(self, count: int, how: Decoding) -> list[ConsumerRecord]:
        """Up to `count` records of what was fetched; moves the position past them.

        Unreadable where the next cannot be read: the position stays before it.
        """
        while self._decoded_at >= len(self._decoded):
            if not self._decode_next(how):
                return []
        decoded, start = self._decoded, self._decoded_at
        whole = start == 0 and len(decoded) <= count
        try:
            taken = deserialize(decoded if whole else decoded[start : start + count], how)
        except UNREADABLE as error:
            self._stuck_at = error.offset
            raise
        self._pass_over(len(taken))
        self.position_epoch = taken[-1].leader_epoch
        return taken

    def _pass_over(self, count: int) -> None:
        """Moves the position past so many of the decoded records."""
        self._stuck_at = UNKNOWN
        self._decoded_at += count
        if self._decoded_at >= len(self._decoded):
            self._decoded, self._decoded_at = [], 0
            self._begun = None
            self.position = self._decoded_end
        else:
            self.position = self._decoded[self._decoded_at - 1].offset + 1

    def skip(self, error: Unreadable) -> None:
        """Goes on behind what could not be read, if that is where the position is."""
        if error.offset not in (self._stuck_at, self.position):
            return
        at = self._decoded_at
        if at < len(self._decoded) and self._decoded[at].offset == error.offset:
            self._pass_over(1)
        else:
            self.move_to(error.next_offset, self.position_epoch)

    def take_batches(self, count: int, size_bytes: int) -> TakenBatches:
        """Batches of up to `count` records, for whoever decodes in another way.

        They are whole, and as many as it takes to reach `size_bytes`. Moves the position past the
        records that lie in the range.
        """
        self._decoded, self._decoded_at = [], 0
        start, left, size = self.position, count, 0
        found: list[RecordBatch] = []
        while left > 0 and size < size_bytes:
            try:
                batch = self._next_batch()
            except UnreadableBatch:
                if not found:
                    raise
                break  # the next poll begins with it
            if batch is None:
                break
            found.append(batch)
            size += batch.size_bytes
            self.position_epoch = batch.leader_epoch
            first = max(self.position, batch.base_offset)
            records = min(batch.record_count, batch.next_offset - first)
            self._begun = batch if records > left else None
            self.position = first + left if records > left else batch.next_offset
            left -= min(records, left)
        return TakenBatches(self.where, start, self.position, found, count - left, size)

    def _decode_next(self, how: Decoding) -> bool:
        """Decodes the next batch; False when there is none."""
        batch = self._next_batch()
        if batch is None:
            return False
        self._begun = batch  # before it is decoded: whoever tries again finds it again
        try:
            self._decoded = decode_batch(batch, self.where, self.position, how)
        except Exception as error:  # whatever damaged bytes make of a decoder
            raise self._stuck(batch, error) from error
        self._decoded_at = 0
        self._decoded_end = batch.next_offset
        self._begun = batch if self._decoded else None
        if not self._decoded:
            self.position = max(self.position, batch.next_offset)
        return True

    def _next_batch(self) -> RecordBatch | None:
        """The one that was begun, else the next; None when there is none."""
        if self._begun is not None:
            return self._begun
        while self.chunks:
            chunk = self.chunks[0]
            try:
                batch = chunk.next_batch()
            except CorruptBatch as error:
                assert chunk.head is not None, "a batch that raised is not passed over"
                raise self._stuck(chunk.head, error) from error
            if batch is not None:
                return batch
            self.chunks.popleft()
            self.buffered_bytes -= chunk.size_bytes
            self.position = max(self.position, chunk.end_offset)
        if self.damage is not None:
            self._stuck_at = self.damage.offset
            raise self.damage.with_traceback(None)
        return None

    def _stuck(self, batch: RecordBatch, cause: Exception) -> UnreadableBatch:
        behind = self.chunks[0].head if self.chunks else None
        if behind is not None and behind is not batch:
            limit = int(behind.base_offset)
        else:
            limit = max(self.end_offset, self.position + 1)
        error = unreadable_batch(batch, self.where, self.position, limit, cause)
        self._stuck_at = error.offset
        return error


class Subscription:
    """What was asked for (topics, a pattern or partitions) and what is read now."""

    __slots__ = (
        "_turn",
        "expression",
        "failing",
        "iterated",
        "lock",
        "pattern",
        "states",
        "topics",
        "was_assigned",
    )

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.expression: str | None = None
        """A pattern for the broker to match."""
        self.was_assigned = False
        self.states: dict[TopicPartition, PartitionState] = {}
        self._turn = 0
        self.failing: TopicPartition | None = None
        """Where a take met something unreadable and returned records of others: that is next."""
        self.iterated: Iterator[ConsumerRecord] = iter(())
        """What a loop over the consumer has taken and not handed out yet."""

    @property
    def is_by_group(self) -> bool:
        """Whether a group decides what is read."""
        return bool(self.topics) or self.pattern is not None or self.expression is not None

    def set_topics(self, topics: Wanted) -> None:
        """What a group shall share out from now on; no topics for nothing."""
        self.topics, self.pattern, self.expression = frozenset(), None, None
        if isinstance(topics, SubscriptionPattern):
            self.expression = topics.text
        elif isinstance(topics, re.Pattern):
            self.pattern = topics
        else:
            self.topics = frozenset(topics)

    def check_can(self, *, assign: bool) -> None:
        """A consumer is either told its partitions or gets them from its group."""
        if assign and self.is_by_group:
            raise WrongUse("the consumer has subscribed; unsubscribe before assigning partitions")
        if not assign and self.was_assigned:
            raise WrongUse("partitions were assigned; unsubscribe before subscribing to topics")

    def set_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these from now on; those that stay keep their place."""
        wanted = dict.fromkeys(partitions)
        with self.lock:
            self.states = {
                where: self.states.get(where) or PartitionState(where) for where in wanted
            }

    def state(self, where: TopicPartition) -> PartitionState:
        """The partition, if it is read."""
        state = self.states.get(where)
        if state is None:
            raise WrongUse(f"{where} is not assigned to this consumer")
        return state

    def positions(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """For partitions that have one, where to go on behind what was handed out; the epoch."""
        with self.lock:
            found = {
                where: (state.position, state.position_epoch)
                for where, state in self.states.items()
                if state.position >= 0
            }
        for where, offset in self._not_handed_out().items():
            if where in found:
                found[where] = (offset, UNKNOWN)
        return found

    # --- what a loop has taken

    def _rest(self) -> list[ConsumerRecord]:
        return list(copy(self.iterated))

    def _not_handed_out(self) -> dict[TopicPartition, int]:
        first: dict[TopicPartition, int] = {}
        for record in self._rest():
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        return first

    def take_rest(self, count: int) -> list[ConsumerRecord]:
        """What a loop has left, for a poll that follows it: of partitions that are still read."""
        rest = [
            record
            for record in self._rest()
            if TopicPartition(record.topic, record.partition) in self.states
        ]
        self.iterated = iter(rest[count:])
        return rest[:count]

    def forget_rest(self, where: TopicPartition) -> None:
        """The partition is read from elsewhere: what a loop has left of it is not handed out."""
        self.iterated = iter(
            [r for r in self._rest() if (r.topic, r.partition) != (where.topic, where.partition)]
        )

    def give_back(self, records: Iterable[ConsumerRecord] | None = None) -> None:
        """Records that were taken, or those a loop has left, are read again."""
        if records is not None:
            self.iterated = iter(list(records))
        with self.lock:
            for where, offset in self._not_handed_out().items():
                if where in self.states:
                    self.states[where].move_to(offset)
        self.iterated = iter(())

    # --- taking

    def take_batches(self, count: int, size_bytes: int) -> tuple[list[TakenBatches], bool]:
        """As `take`, but batches that are not decoded; `size_bytes` of them or a batch more."""
        with self.lock:
            states, due = self._by_turns()
            before = sum(state.buffered_bytes for state in states)
            found: list[TakenBatches] = []
            error: UnreadableBatch | None = None
            for state in states:
                if count <= 0 or size_bytes <= 0:
                    break
                try:
                    taken = state.take_batches(count, size_bytes)
                except UnreadableBatch as problem:
                    if state is due:
                        raise
                    error = problem
                    self.failing = state.where
                    continue
                count -= taken.record_count
                size_bytes -= taken.size_bytes
                if taken.batches:
                    found.append(taken)
            if error is not None and not found:
                self.failing = None
                raise error
            return found, sum(state.buffered_bytes for state in states) < before

    def take(self, count: int, how: Decoding) -> tuple[list[ConsumerRecord], bool]:
        """Up to `count` records, partitions by turns; and whether there is room to fetch more.

        Unreadable where there is none before it. Records of other partitions are returned, but
        then the next call raises: neither hides the other.
        """
        with self.lock:
            states, due = self._by_turns()
            if not states:
                return [], False
            before = sum(state.buffered_bytes for state in states)
            taken: list[ConsumerRecord] = []
            error: Unreadable | None = None
            for state in states:
                try:
                    while len(taken) < count and (more := state.take(count - len(taken), how)):
                        taken = taken + more if taken else more
                except UNREADABLE as problem:
                    if state is due and not taken:
                        raise
                    error = problem
                    self.failing = state.where
                if len(taken) >= count:
                    break
            if error is not None and not taken:
                self.failing = None
                raise error
            return taken, sum(state.buffered_bytes for state in states) < before

    def _by_turns(self) -> tuple[list[PartitionState], PartitionState | None]:
        """Those with something to take, another one first each time: one that is due to raise."""
        states = [s for s in self.states.values() if s.has_records and not s.is_paused]
        self._turn += 1
        first = self._turn % len(states) if states else 0
        ordered = states[first:] + states[:first]
        if self.failing is None:
            return ordered, None
        due = next((state for state in ordered if state.where == self.failing), None)
        if due is not None:
            self.failing = None
            ordered.remove(due)
            ordered.insert(0, due)
        elif self.failing not in self.states:
            self.failing = None
        return ordered, due
