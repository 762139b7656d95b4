"""Fetch sessions: a client names its partitions once and then only what changed (KIP-227).

Does not know logs. Invariants:
1. A session's epoch in a request is exactly the one the broker expects next, or nothing is read.
2. A session speaks of topics either by name or by id, never both.
3. There are at most `slots` sessions. A new one takes the place of one idle for long; else of one
   that has lived as long and matters less: a consumer's for a follower's, a smaller for a larger.
4. A target rests or is awake, never both; whoever takes it out of a session ends its rest.
5. A follower has one session: it asks over one connection, and a new session means a new one.
6. Session ids are drawn by chance: a client that missed a restart must not meet another's session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from ottla.broker.unique_ids import new_session_id
from ottla.broker.watch import Watcher
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import BrokerId
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1
EVICT_IDLE_MS: Final = 120_000

TopicKey = str | bytes
"""A topic's name, or its id where the request's version has ids."""


class FetchTarget:
    """One partition a client reads: where from, and what it was told of it last."""

    __slots__ = (
        *("bytes_max", "current_leader_epoch", "fetch_offset", "key", "last_fetched_epoch"),
        *("partition", "told_high_watermark", "told_last_stable_offset", "told_start_offset"),
        "topic",
    )

    def __init__(self, topic: TopicKey, wanted: FetchPartition) -> None:
        self.topic = topic
        self.partition: int = wanted.partition
        self.key: tuple[TopicKey, int] = (topic, self.partition)
        self.fetch_offset: int = wanted.fetch_offset
        self.bytes_max: int = wanted.partition_max_bytes
        self.current_leader_epoch: int = wanted.current_leader_epoch
        self.last_fetched_epoch: int = wanted.last_fetched_epoch
        self.told_high_watermark = -1
        self.told_last_stable_offset = -1
        self.told_start_offset = -1

    def is_news(self, data: PartitionData) -> bool:
        """Whether the client does not know this yet; it will, after this."""
        is_news = bool(
            data.records
            or data.error_code
            or data.diverging_epoch is not None
            or data.preferred_read_replica != -1
            or data.high_watermark != self.told_high_watermark
            or data.last_stable_offset != self.told_last_stable_offset
            or data.log_start_offset != self.told_start_offset
        )
        self.told_high_watermark = data.high_watermark
        self.told_last_stable_offset = data.last_stable_offset
        self.told_start_offset = data.log_start_offset
        return is_news


class Rest(Protocol):
    """The rest of one target: nothing is to be read there until it wakes."""

    target: FetchTarget

    def end(self) -> None: ...


class FetchSession:
    """The partitions of one client, in the order in which they are read next."""

    __slots__ = (
        "_awake",
        "_resting",
        "alarm",
        "created_ms",
        "epoch",
        "follower",
        "id",
        "is_closed",
        "last_used_ms",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, targets: Iterable[FetchTarget], uses_ids: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_topic_ids = uses_ids
        self.follower: BrokerId | None = None
        self.created_ms = self.last_used_ms = 0
        self.is_closed = False
        self.alarm: Watcher | None = None
        """Of a fetch that waits: woken with any target that rested."""
        self._awake = OrderedDict((target.key, target) for target in targets)
        self._resting: dict[tuple[TopicKey, int], Rest] = {}

    def __len__(self) -> int:
        return len(self._awake) + len(self._resting)

    def __iter__(self) -> Iterator[FetchTarget]:
        """Those that are to be looked at."""
        return iter(tuple(self._awake.values()))

    @property
    def rank(self) -> tuple[bool, int]:
        """How much it matters that this one is kept."""
        return self.follower is not None, len(self)

    def update(self, changed: Iterable[FetchTarget], gone: Iterable[tuple[TopicKey, int]]) -> None:
        """Takes over what an incremental request says."""
        for target in changed:
            known = self._awaken(target.key)
            if known is None:
                self._awake[target.key] = target
                continue
            known.fetch_offset = target.fetch_offset
            known.bytes_max = target.bytes_max
            known.current_leader_epoch = target.current_leader_epoch
            known.last_fetched_epoch = target.last_fetched_epoch
        for key in gone:
            self._awaken(key)
            self._awake.pop(key, None)

    def rest(self, rest: Rest) -> None:
        """A target is not looked at until it wakes."""
        del self._awake[rest.target.key]
        self._resting[rest.target.key] = rest

    def woke(self, rest: Rest) -> None:
        """Its rest has ended."""
        key = rest.target.key
        if self._resting.get(key) is rest:
            del self._resting[key]
            self._awake[key] = rest.target
            if self.alarm is not None:
                self.alarm.wake()

    def is_awake(self, target: FetchTarget) -> bool:
        """Whether the target is in this session and does not rest."""
        return self._awake.get(target.key) is target

    def close(self) -> None:
        """Nothing is asked in this session any more."""
        self.is_closed = True
        for key in tuple(self._resting):
            self._awaken(key)

    def _awaken(self, key: tuple[TopicKey, int]) -> FetchTarget | None:
        rest = self._resting.pop(key, None)
        if rest is not None:
            rest.end()
            self._awake[key] = rest.target
        return self._awake.get(key)

    def served(self, target: FetchTarget) -> None:
        """A partition that gave records goes to the end, so that all get their turn."""
        if target.key in self._awake:
            self._awake.move_to_end(target.key)

    def expect_next(self) -> None:
        """The next request of the session carries the next epoch."""
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1


class Fetch:
    """What one request reads: the whole list it gave, or its session's."""

    __slots__ = ("is_incremental", "listed", "session")

    def __init__(
        self,
        listed: tuple[FetchTarget, ...],
        session: FetchSession | None,
        *,
        is_incremental: bool = False,
    ) -> None:
        self.listed = listed
        self.session = session
        self.is_incremental = is_incremental

    @property
    def targets(self) -> tuple[FetchTarget, ...]:
        """What is to be looked at now."""
        if self.is_incremental and self.session is not None:
            return tuple(self.session)
        return self.listed

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing at all."""
        return not self.listed and not (self.is_incremental and self.session)

    @property
    def session_id(self) -> int:
        return self.session.id if self.session is not None else NO_SESSION


class FetchSessions:
    """All sessions of this broker."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, *, uses_ids: bool, now_ms: int) -> Fetch:
        """Finds, creates or ends the session a request speaks of."""
        if request.session_epoch == FINAL_EPOCH:
            if request.session_id != NO_SESSION:
                self._drop(request.session_id)
            return Fetch(tuple(_targets(request, uses_ids)), None)
        if request.session_epoch == INITIAL_EPOCH:
            self._drop(request.session_id)
            targets = tuple(_targets(request, uses_ids))
            wanted = FetchSession(self._new_id(), targets, uses_ids)
            wanted.created_ms = wanted.last_used_ms = now_ms
            wanted.follower = follower_of(request)
            self._drop_former_of(wanted.follower)
            return Fetch(targets, wanted if self._add(wanted, now_ms) else None)
        session = self._next_of(request, uses_ids)
        self._sessions.move_to_end(session.id)
        # What rested did so until the request before this one, which may say that it moved.
        session.update(_targets(request, uses_ids), _forgotten(request, uses_ids))
        session.last_used_ms = now_ms
        if not len(session):
            self._drop(session.id)
            return Fetch((), None)
        session.expect_next()
        return Fetch((), session, is_incremental=True)

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _drop_former_of(self, follower: BrokerId | None) -> None:
        if follower is not None:
            former = [each.id for each in self._sessions.values() if each.follower == follower]
            for session_id in former:
                self._drop(session_id)

    def _next_of(self, request: FetchRequest, uses_ids: bool) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise RequestFailed(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise RequestFailed(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_ids:
            raise RequestFailed(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def _new_id(self) -> int:
        while (session_id := new_session_id()) in self._sessions:
            pass
        return session_id

    def _add(self, wanted: FetchSession, now_ms: int) -> bool:
        if not len(wanted) or not self._make_room(wanted, now_ms):
            return False
        self._sessions[wanted.id] = wanted
        return True

    def _make_room(self, wanted: FetchSession, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        least = next(iter(self._sessions.values()))
        if now_ms - least.last_used_ms < EVICT_IDLE_MS:
            settled = [s for s in self._sessions.values() if now_ms - s.created_ms > EVICT_IDLE_MS]
            if not settled:
                return False
            least = min(settled, key=lambda session: session.rank)
            if least.rank >= wanted.rank:
                return False
        self._drop(least.id)
        return True


def follower_of(request: FetchRequest) -> BrokerId | None:
    """The broker that asks in order to replicate; None for consumers."""
    state = request.replica_state
    replica = request.replica_id if state is None else state.replica_id
    return BrokerId(replica) if replica >= 0 else None


def _targets(request: FetchRequest, uses_ids: bool) -> Iterator[FetchTarget]:
    for topic in request.topics:
        key: TopicKey = topic.topic_id if uses_ids else topic.topic
        for wanted in topic.partitions:
            yield FetchTarget(key, wanted)


def _forgotten(request: FetchRequest, uses_ids: bool) -> Iterator[tuple[TopicKey, int]]:
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            yield (topic.topic_id if uses_ids else topic.topic), partition
