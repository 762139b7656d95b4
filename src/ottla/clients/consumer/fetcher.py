"""Fetches ahead of the caller: one long poll at a time with each leader, within bounded memory.

Runs on the loop by callbacks, like the sender of a producer: whatever happens causes one turn, and
a turn asks every leader that is not asked already. Does not decode records.

Invariants:
1. A partition whose waiting bytes reach `max.partition.fetch.bytes` twice, and one answer, is not
   asked for; nor is any, while `fetch.max.bytes` wait in all.
2. An answer is taken only for the version and offset of a partition it was asked for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from ottla.clients.client import Client
from ottla.clients.consumer.fetch_session import (
    SESSION_ERRORS,
    FetchPlace,
    FetchSession,
    Question,
)
from ottla.clients.consumer.metrics import ConsumerCounters
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.consumer.subscription import Chunk, PartitionState, Subscription
from ottla.clients.consumer.unreadable import UnreadableBatch, sound_batches
from ottla.clients.failures import error_code, is_worth_retrying, refusal
from ottla.clients.leader_hints import read_hint
from ottla.clients.metadata import NO_BROKER
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

FETCH_LANE: Final = "fetch"
_FETCH_VERSION_MIN: Final = 4
"""The first whose answers have batches of format 2."""
_HELD_BACK_WAIT_MS: Final = 5
"""How long a broker waits while a partition of its own is only waiting for the caller."""
_GRACE_S: Final = 10.0
_READ_COMMITTED: Final = 1
_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)

_log = logging.getLogger("ottla.clients.consumer")

Asked = dict[TopicPartition, tuple[PartitionState, int, int]]
"""By partition: its state, the version and the offset of the question."""


class Fetcher:
    """The one who fetches. `wake` it from the loop when something changed."""

    __slots__ = (
        "_client",
        "_events",
        "_failures",
        "_is_closed",
        "_is_scheduled",
        "_loop",
        "_not_before",
        "_rack",
        "_sessions",
        "_settings",
        "_subscription",
        "_tasks",
        "_timer",
        "counters",
        "error",
        "partition_bytes",
    )

    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        settings: ConsumerSettings,
        events: FetchEvents,
        *,
        rack: str = "",
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._settings = settings
        self._events = events
        self.counters = events.counters
        self._rack = rack
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[BrokerId, asyncio.Task[None]] = {}
        self._not_before: dict[BrokerId, float] = {}
        self._failures: dict[BrokerId, int] = {}
        self._sessions: dict[BrokerId, FetchSession] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_scheduled = False
        self._is_closed = False
        self.partition_bytes = settings.max_partition_fetch_bytes
        """The most that is asked for of one partition at once."""
        self.error: OttlaError | None = None
        """What no retry helps, for the next poll to raise."""

    def wake(self) -> None:
        """Something changed: look as soon as the loop has a moment."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    async def close(self) -> None:
        """Gives up what is under way."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- one turn

    def _turn(self) -> None:
        self._is_scheduled = False
        if self._is_closed:
            return
        now = time.monotonic()
        due = now + 1.0
        by_broker, held_back = self._fetchable(now)
        for broker, states in by_broker.items():
            if broker in self._tasks:
                continue
            if self._not_before.get(broker, 0.0) > now:
                due = min(due, self._not_before[broker])
                continue
            wait_ms = self._settings.fetch_max_wait_ms
            if broker in held_back:
                wait_ms = min(wait_ms, _HELD_BACK_WAIT_MS)
            self._tasks[broker] = self._loop.create_task(self._fetch(broker, states, wait_ms))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.001, due - now), self.wake)

    def _fetchable(self, now: float) -> tuple[dict[BrokerId, list[PartitionState]], set[BrokerId]]:
        by_broker: dict[BrokerId, list[PartitionState]] = {}
        held_back: set[BrokerId] = set()
        settings = self._settings
        states = list(self._subscription.states.values())
        total = sum(state.buffered_bytes for state in states)
        # Of large answers one ahead is enough, and more would only take fresh memory.
        ahead_bytes = max(2 * settings.max_partition_fetch_bytes, self.partition_bytes)
        for state in states:
            if state.position < 0 or state.is_paused or state.needs_validation:
                continue
            if state.reset_to is not None or state.not_before > now or state.damage is not None:
                continue
            broker = self._broker_of(state, now)
            if state.needs_validation:  # its leader has just changed
                continue
            if broker == NO_BROKER:
                self._events.metadata_wanted()
                continue
            if state.buffered_bytes >= ahead_bytes or total >= settings.fetch_max_bytes:
                held_back.add(broker)
                continue
            by_broker.setdefault(broker, []).append(state)
        return by_broker, held_back

    def _broker_of(self, state: PartitionState, now: float) -> BrokerId:
        if state.preferred is not None:
            if state.preferred_until > now and state.preferred in self._client.picture.brokers:
                return state.preferred
            state.preferred = None
        topic = self._client.picture.topics.get(state.where.topic)
        if topic is None or state.where.partition >= len(topic.partitions):
            return NO_BROKER
        info = topic.partitions[state.where.partition]
        if info.leader_epoch > state.leader_epoch:
            if state.position_epoch >= 0 and state.leader_epoch >= 0:
                state.needs_validation = True
                self._events.positions_wanted()
            state.leader_epoch = info.leader_epoch
        return info.leader

    # --- one fetch

    async def _fetch(self, broker: BrokerId, states: list[PartitionState], wait_ms: int) -> None:
        asked: Asked = {s.where: (s, s.version, s.fetch_offset) for s in states}
        session = self._sessions.setdefault(broker, FetchSession())
        question = session.ask(self._places(states))
        try:
            response = await self._client.call(
                self._request(question, wait_ms),
                FetchResponse,
                to=broker,
                at_least=_FETCH_VERSION_MIN,
                timeout_s=wait_ms / 1000
                + max(_GRACE_S, self._client.options.connection.request_timeout_s),
                lane=FETCH_LANE,
            )
            if response.error_code in SESSION_ERRORS and not question.is_full:
                session.failed()
                return
            if response.error_code:
                raise refusal(response.error_code, f"fetching from broker {broker}")
            session.answered(response.session_id)
            self._failures[broker] = 0
            self.counters.fetches += 1
            self._throttle(broker, response.throttle_time_ms)
            self._take(asked, response)
        except OttlaError as error:
            session.failed()
            self._trouble(broker, states, error)
        finally:
            self._tasks.pop(broker, None)
            self.wake()

    def _trouble(self, broker: BrokerId, states: list[PartitionState], error: OttlaError) -> None:
        if not is_worth_retrying(error):
            self.error = error
            self._events.something_came()
        _log.info("fetching from broker %s failed: %s", broker, error)
        self._failures[broker] = self._failures.get(broker, 0) + 1
        wait_s = self._client.options.retries.wait_s(self._failures[broker])
        self._not_before[broker] = time.monotonic() + wait_s
        for state in states:
            state.preferred = None
        self._events.metadata_wanted()

    def _throttle(self, broker: BrokerId, throttle_ms: int) -> None:
        if throttle_ms > 0:
            self._not_before[broker] = time.monotonic() + throttle_ms / 1000

    def _places(self, states: list[PartitionState]) -> dict[TopicPartition, FetchPlace]:
        known = self._client.picture.topics
        return {
            state.where: FetchPlace(
                known[state.where.topic].id, state.fetch_offset, state.leader_epoch
            )
            for state in states
        }

    def _request(self, question: Question, wait_ms: int) -> FetchRequest:
        settings = self._settings
        topics: dict[str, FetchTopic] = {}
        for where, place in question.places.items():
            topic = topics.get(where.topic)
            if topic is None:
                topic = FetchTopic(topic=where.topic, topic_id=place.topic_id, partitions=[])
                topics[where.topic] = topic
            topic.partitions.append(
                FetchPartition(
                    partition=where.partition,
                    current_leader_epoch=place.leader_epoch,
                    fetch_offset=place.offset,
                    partition_max_bytes=self.partition_bytes,
                )
            )
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=_READ_COMMITTED if settings.committed_only else 0,
            session_id=question.session_id,
            session_epoch=question.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                ForgottenTopic(
                    topic=where.topic, topic_id=place.topic_id, partitions=[where.partition]
                )
                for where, place in question.forgotten.items()
            ],
            rack_id=self._rack,
        )

    def _take(self, asked: Asked, response: FetchResponse) -> None:
        names = {info.id: name for name, info in self._client.picture.topics.items()}
        for topic in response.responses:
            name = topic.topic or names.get(TopicId(topic.topic_id), "")
            for data in topic.partitions:
                where = TopicPartition(name, data.partition_index)
                hint = read_hint(where, data.current_leader, response.node_endpoints)
                has_leader = hint is not None and self._client.learn_leader(hint) is not None
                question = asked.get(where)
                if question is not None:
                    self._take_partition(*question, data)
                    if has_leader:
                        question[0].not_before = 0.0
        self._events.something_came()

    def _take_partition(
        self, state: PartitionState, version: int, offset: int, data: PartitionData
    ) -> None:
        with self._subscription.lock:
            if state.version != version or state.fetch_offset != offset:
                return
            if data.error_code:
                self._refused(state, data)
                return
            state.high_watermark = data.high_watermark
            stable = data.last_stable_offset
            limited = self._settings.committed_only and stable >= 0
            state.end_offset = stable if limited else data.high_watermark
            state.log_start = data.log_start_offset
            if data.preferred_read_replica >= 0:
                state.preferred = BrokerId(data.preferred_read_replica)
                state.preferred_until = time.monotonic() + 300.0
            self._keep(state, offset, data)

    def _keep(self, state: PartitionState, offset: int, data: PartitionData) -> None:
        view = data.records
        if not isinstance(view, memoryview) or not len(view):
            return
        batches, damage = sound_batches(view)
        batches = [batch for batch in batches if batch.next_offset > offset]
        if damage is not None:
            at = batches[-1].next_offset if batches else offset
            state.damage = UnreadableBatch(state.where, (at, at + 1), damage, bytes(view))
        if not batches:
            return
        aborted = data.aborted_transactions if self._settings.committed_only else None
        chunk = Chunk(batches, aborted or (), len(view))
        state.chunks.append(chunk)
        state.buffered_bytes += chunk.size_bytes
        state.fetch_offset = chunk.end_offset
        self.counters.bytes_fetched += chunk.size_bytes

    def _refused(self, state: PartitionState, data: PartitionData) -> None:
        code = error_code(data.error_code)
        state.not_before = time.monotonic() + self._client.options.retries.wait_s(1)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.preferred is not None:
                state.preferred = None
            elif not state.has_records:
                state.reset_to = self._settings.auto_offset_reset
                self._events.positions_wanted()
            return
        state.preferred = None
        if code in _LEADER_MOVED or code.retriable:
            self._events.metadata_wanted()
            return
        self.error = refusal(data.error_code, f"partition {state.where}")


class FetchEvents:
    """Whom a fetcher tells what."""

    __slots__ = ("counters", "metadata_wanted", "positions_wanted", "something_came")

    def __init__(
        self,
        something_came: Callable[[], None],
        metadata_wanted: Callable[[], None],
        positions_wanted: Callable[[], None],
    ) -> None:
        self.something_came = something_came
        self.metadata_wanted = metadata_wanted
        self.positions_wanted = positions_wanted
        self.counters = ConsumerCounters()
