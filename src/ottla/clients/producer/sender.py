"""Takes full or aged batches to the leaders of their partitions, and their answers back.

Runs on the loop by callbacks: whatever happens (a batch begins or ends, a timer, an answer) causes
one turn, and a turn sends all that can be sent. Does not know how records got into batches.

Invariants:
1. At most `max.in.flight.requests.per.connection` requests wait for one broker.
2. Of one partition at most `partition_in_flight_max` batches are on their way, and none while one
   that must be repeated waits for the others to come back. What is repeated goes alone: others
   that overtook it would make the broker forget that it has it. So would those that a new leader
   answers while the old one is silent: they count until the oldest has its answer. The first of a
   producer goes alone too: a broker that knows nothing of one takes any sequence for its first.
3. A partition's batches are sent in their order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from ottla.clients.client import Client
from ottla.clients.failures import refusal
from ottla.clients.leader_hints import read_hint
from ottla.clients.producer.accumulator import Accumulator
from ottla.clients.producer.batch import UNKNOWN_OFFSET, ProducerBatch
from ottla.clients.producer.metrics import ProducerCounters
from ottla.clients.producer.outcomes import Outcomes
from ottla.clients.producer.routing import PartitionQueue, Route
from ottla.clients.producer.settings import ACKS_NONE, ProducerSettings
from ottla.clients.producer.stamping import Permission, Stamping
from ottla.errors import ErrorCode, OttlaError, ProtocolError
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.protocol.message import VERSION_MAX
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.compression import Compression

_PRODUCE_VERSION_MIN: Final = 3
"""The first that takes batches of format 2."""
_ZSTD_VERSION_MIN: Final = 7
_EARLIER_TRANSACTIONS_VERSION: Final = 11
"""The last that does not add partitions to a transaction by writing to them."""
_SOON_S: Final = 0.005

_log = logging.getLogger("ottla.clients.producer")

Load = list[tuple[PartitionQueue, ProducerBatch]]
Loads = dict[BrokerId, list[tuple[Route, PartitionQueue]]]


class Sender:
    """The one who sends. `wake` it from the loop."""

    __slots__ = (
        "_accumulator",
        "_client",
        "_in_flight",
        "_is_closed",
        "_is_scheduled",
        "_loop",
        "_metadata_wanted",
        "_permission",
        "_settings",
        "_stamping",
        "_tasks",
        "_throttled",
        "_timer",
        "_timer_due",
        "counters",
        "flushing",
        "in_flight_total",
        "outcomes",
    )

    def __init__(
        self,
        client: Client,
        accumulator: Accumulator,
        settings: ProducerSettings,
        permission: Permission,
        metadata_wanted: Callable[[], None],
    ) -> None:
        self._client = client
        self._accumulator = accumulator
        self._settings = settings
        self._permission = permission
        self._stamping = Stamping(settings, permission)
        self.counters = ProducerCounters()
        self._metadata_wanted = metadata_wanted
        self.outcomes = Outcomes(
            accumulator, settings, client.options.retries, self.counters, permission.failed
        )
        self._loop = asyncio.get_running_loop()
        self._is_scheduled = False
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._in_flight: dict[BrokerId, int] = {}
        self._throttled: dict[BrokerId, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.flushing = 0
        """How many wait for everything to be sent, so that nothing lingers."""
        self.in_flight_total = 0

    def wake(self) -> None:
        """Something changed: look as soon as the loop has a moment."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def close(self) -> list[asyncio.Task[None]]:
        """No more turns; returns the requests under way, cancelled."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        return list(self._tasks)

    # --- one turn

    def _turn(self) -> None:
        self._is_scheduled = False
        if self._is_closed:  # it was scheduled before: what it sent nobody would wait for
            return
        self._accumulator.is_woken = False
        now = time.monotonic()
        blocked = self._permission.blocked()
        if blocked is not None:
            self.outcomes.fail_pending(blocked)
        dues = [self._accumulator.close_aged(now, is_flushing=self.flushing > 0)]
        while True:
            loads, due = self._loads(now)
            dues.append(due)
            if not loads:
                break
            for leader, queues in loads.items():
                self._dispatch(leader, queues)
        self._set_timer([due for due in dues if due is not None])

    def _set_timer(self, dues: list[float]) -> None:
        """There will be a turn when the first of them is due; one too early does no harm."""
        if not dues:
            return
        due = min(dues)
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        wait_s = max(0.0, due - time.monotonic())
        self._timer = self._loop.call_later(wait_s, self._timer_rang)

    def _timer_rang(self) -> None:
        self._timer = None
        self.wake()

    def _loads(self, now: float) -> tuple[Loads, float | None]:
        """By leader, the partitions that can be sent now; and when to look again."""
        loads: Loads = {}
        due: float | None = None
        ready = self._accumulator.ready
        limit_s = self._settings.delivery_timeout_ms / 1000
        for queue, route in list(ready.items()):
            self.outcomes.expire(queue, now)
            if queue.is_held:
                self.outcomes.settle(queue, now)
            if not queue.pending:
                self._accumulator.forget(queue)
                continue
            at = self._obstacle(route, queue, now)
            if at is None:
                loads.setdefault(route.leaders[queue.partition], []).append((route, queue))
                continue
            at = min(at, queue.pending[0].created + limit_s)
            due = at if due is None else min(due, at)
        return loads, due

    def _obstacle(self, route: Route, queue: PartitionQueue, now: float) -> float | None:
        """Until when the partition cannot be sent; None if it can. Far off: an event will tell."""
        far = now + 3600.0
        settings = self._settings
        if queue.retrying or queue.is_held:
            return far
        if queue.in_flight and (
            queue.window >= settings.partition_in_flight_max
            or queue.in_flight[0].attempts > 1
            or queue.in_flight[0].stamp.producer_id != queue.known_producer_id
            or queue.pending[0].attempts
        ):
            return far
        if queue.not_before > now:
            return queue.not_before
        leader = route.leaders[queue.partition]
        if leader < 0:
            self._metadata_wanted()
            return far
        if self._in_flight.get(leader, 0) >= settings.max_in_flight_requests_per_connection:
            return far
        if self._throttled.get(leader, 0.0) > now:
            return self._throttled[leader]
        if settings.enable_idempotence and (
            self._permission.identity is None or not self._permission.may_send(queue.where)
        ):
            self._permission.request()
            return far
        return None

    def _dispatch(self, leader: BrokerId, queues: list[tuple[Route, PartitionQueue]]) -> None:
        """One request with one batch of each partition, as far as they fit."""
        load: Load = []
        topics: dict[str, TopicProduceData] = {}
        size = 0
        for route, queue in queues:
            batch = queue.pending[0]
            if load and size + batch.size > self._settings.max_request_size:
                break
            taken = self._accumulator.take(queue)
            assert taken is batch
            self._stamping.prepare(queue, batch)
            assert batch.data is not None
            size += len(batch.data)
            topic = topics.get(route.topic)
            if topic is None:
                topic = TopicProduceData(name=route.topic, topic_id=route.id, partition_data=[])
                topics[route.topic] = topic
            topic.partition_data.append(
                PartitionProduceData(index=queue.partition, records=memoryview(batch.data))
            )
            queue.in_flight.append(batch)
            load.append((queue, batch))
        self._in_flight[leader] = self._in_flight.get(leader, 0) + 1
        self.in_flight_total += 1
        task = self._loop.create_task(self._send(leader, load, list(topics.values())))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- one request

    async def _send(self, leader: BrokerId, load: Load, topics: list[TopicProduceData]) -> None:
        started = time.monotonic()
        needs_look = False
        try:
            response = await self._produce(leader, load, topics)
            self.counters.answered(time.monotonic() - started)
            needs_look = self._answered(leader, load, response)
        except (OttlaError, OSError) as error:
            failure = error if isinstance(error, OttlaError) else ProtocolError(str(error))
            _log.info("producing to broker %s failed: %s", leader, failure)
            for queue, batch in load:
                self.outcomes.failed(queue, batch, failure)
            needs_look = True
        finally:
            self._in_flight[leader] -= 1
            self.in_flight_total -= 1
        now = time.monotonic()
        for queue, _ in load:
            route = self._accumulator.routes[queue.where.topic]
            self.outcomes.settle(queue, now)
            if queue.has_new_leader and not queue.in_flight:
                queue.has_new_leader = False
                queue.not_before = 0.0
            if queue.pending:
                self._accumulator.ready.setdefault(queue, route)
        if needs_look:
            self._metadata_wanted()
        self.wake()

    async def _produce(
        self, leader: BrokerId, load: Load, topics: list[TopicProduceData]
    ) -> ProduceResponse | None:
        settings = self._settings
        permission = self._permission
        is_zstd = self._stamping.compression is Compression.ZSTD
        at_least = _ZSTD_VERSION_MIN if is_zstd else _PRODUCE_VERSION_MIN
        at_most = VERSION_MAX
        if permission.is_transactional and not permission.adds_by_writing:
            at_most = _EARLIER_TRANSACTIONS_VERSION
        request = ProduceRequest(
            transactional_id=settings.transactional_id or None,
            acks=settings.acks_number,
            timeout_ms=int(self._client.options.connection.request_timeout_s * 1000),
            topic_data=topics,
        )
        connection = await self._client.connection_to(leader)
        deadline = min(batch.created for _, batch in load) + settings.delivery_timeout_ms / 1000
        limit_s = self._client.options.connection.request_timeout_s
        timeout_s = max(_SOON_S, min(limit_s, deadline - time.monotonic()))
        if settings.acks_number == ACKS_NONE:
            await connection.send(request, at_least=at_least, timeout_s=timeout_s)
            return None
        return await connection.call(
            request,
            ProduceResponse,
            at_least=at_least,
            at_most=at_most,
            timeout_s=timeout_s,
        )

    def _answered(self, leader: BrokerId, load: Load, response: ProduceResponse | None) -> bool:
        """Hands each batch its row of the answer; True if the cluster should be looked at."""
        if response is None:
            for queue, batch in load:
                queue.in_flight.remove(batch)
                self.outcomes.succeed(batch, UNKNOWN_OFFSET, -1)
            return False
        if response.throttle_time_ms > 0:
            self.counters.throttled_ms += response.throttle_time_ms
            self._throttled[leader] = time.monotonic() + response.throttle_time_ms / 1000
        names = {route.id: name for name, route in self._accumulator.routes.items()}
        rows = _rows(response, names)
        needs_look = False
        for queue, batch in load:
            row = rows.get(queue.where)
            if row is None:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                self.outcomes.failed(queue, batch, refusal(code, str(queue.where), "no answer"))
            elif self.outcomes.answered(queue, batch, row):
                needs_look |= not self._learnt_leader(queue, row, response)
        return needs_look

    def _learnt_leader(
        self, queue: PartitionQueue, row: PartitionProduceResponse, response: ProduceResponse
    ) -> bool:
        """Whether the refusal says who leads instead: then nobody needs to look, nor to wait."""
        hint = read_hint(queue.where, row.current_leader, response.node_endpoints)
        topic = self._client.learn_leader(hint) if hint is not None else None
        if topic is None:
            return False
        with self._accumulator.lock:
            self._accumulator.routes[topic.name].update(topic)
        queue.has_new_leader = True
        return True


def _rows(
    response: ProduceResponse, names: Mapping[TopicId, str]
) -> dict[TopicPartition, PartitionProduceResponse]:
    return {
        TopicPartition(topic.name or names.get(TopicId(topic.topic_id), ""), row.index): row
        for topic in response.responses
        for row in topic.partition_responses
    }
