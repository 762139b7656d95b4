"""One producer behind both of its faces: the pipeline from a record to its batch, and its life.

    interceptors → serializers → partitioner → accumulator → sender → connection

A record of bytes to a known topic takes the short way: `open_batch`, and then the batch's `add`,
which is all of it; every other goes through `prepare` and `append`. What these call may run
in any thread; all that waits runs on the loop. The faces differ only in how they wait.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla.clients.connection_settings import ConnectionSettings, client_for
from ottla.clients.failures import (
    BufferFull,
    ClientClosed,
    NoBrokerReachable,
    SerializationFailed,
    TopicNotFound,
    WrongUse,
)
from ottla.clients.metadata import TopicInfo
from ottla.clients.producer.accumulator import NO_HEADERS, Accumulator, Slot
from ottla.clients.producer.batch import Callback, ProducerBatch
from ottla.clients.producer.identity import Identity
from ottla.clients.producer.interceptors import OutgoingRecord, ProducerInterceptor
from ottla.clients.producer.leader_watch import LeaderWatch
from ottla.clients.producer.metrics import ProducerMetrics
from ottla.clients.producer.routing import Partitioner, PartitionQueue, Route
from ottla.clients.producer.sender import Sender
from ottla.clients.producer.settings import ProducerSettings, check_together
from ottla.clients.producer.transaction import Phase, Transaction
from ottla.clients.serializers import BytesLike, Choice, as_bytes, serializer_for
from ottla.clients.settings_source import Config, SettingsSource
from ottla.errors import OttlaError, RequestFailed
from ottla.net.client_connection import ConnectionFailed
from ottla.records.record import Headers, encode_headers

_TIMESTAMP_END: Final = 2**63
LEAVING_TIMEOUT_S: Final = 5.0
"""How long a block that is left by an exception waits for what was sent in it."""

HeadersInput = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]

_log = logging.getLogger("ottla.clients.producer")


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """Everything a producer is told when it is made, read and checked."""

    connection: ConnectionSettings
    settings: ProducerSettings
    key_serializer: Callable[[Any], bytes] | None = None
    value_serializer: Callable[[Any], bytes] | None = None
    partitioner: Partitioner | None = None
    interceptors: tuple[ProducerInterceptor, ...] = ()
    idempotence_was_asked: bool = False
    batch_size_was_given: bool = False
    """Otherwise whole tables travel in larger batches than single records."""


def plan_producer(
    config: Config,
    keywords: Mapping[str, object],
    *,
    serializers: tuple[Choice, Choice] = (None, None),
    partitioner: Partitioner | None = None,
    interceptors: Sequence[ProducerInterceptor] = (),
) -> ProducerPlan:
    """Reads what a person wrote; `serializers` are the key's and the value's."""
    source = SettingsSource("producer", config, keywords)
    source.check_names((ConnectionSettings, ProducerSettings))
    was_asked = source.was_given("enable.idempotence")
    settings = check_together(source.read(ProducerSettings), idempotence_was_asked=was_asked)
    return ProducerPlan(
        source.read(ConnectionSettings),
        settings,
        serializer_for(serializers[0]),
        serializer_for(serializers[1]),
        partitioner,
        tuple(interceptors),
        was_asked,
        source.was_given("batch.size"),
    )


class ProducerCore:
    """The producer. Made on the loop; `wake_sender` says how to reach the loop from a thread."""

    __slots__ = (
        "_client",
        "_ignores_keys",
        "_routes",
        "_sender",
        "_unheard",
        "_watch",
        "accumulator",
        "identity",
        "is_closed",
        "is_plain",
        "plan",
        "transaction",
    )

    def __init__(
        self, plan: ProducerPlan, call_on_loop: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        settings = plan.settings
        self.plan = plan
        self._client = client_for(plan.connection, total_s=settings.max_block_ms / 1000 or 0.001)
        wake = self._wake if call_on_loop is None else lambda: call_on_loop(self._wake)
        self.accumulator = Accumulator(settings, wake)  # type: ignore[arg-type]
        self.transaction: Transaction | None = None
        if settings.transactional_id:
            self.transaction = Transaction(self._client, settings, self._wake)
        self.identity = self.transaction or Identity(
            self._client, self._wake, is_asked_for=plan.idempotence_was_asked
        )
        self._watch = LeaderWatch(self._client, self.accumulator, self._wake)
        self._sender = Sender(
            self._client,
            self.accumulator,
            settings,
            self.identity,
            self._watch.look_soon,
        )
        self._unheard = self._sender.outcomes.unheard
        self._ignores_keys = settings.partitioner_ignore_keys
        self._routes = self.accumulator.routes
        self.is_plain = not (
            plan.interceptors
            or plan.key_serializer
            or plan.value_serializer
            or plan.partitioner
            or self._ignores_keys
        )
        """Whether the short way may be tried, until the end."""
        self.is_closed = False

    async def start(self) -> None:
        """Reaches the cluster, and for a transactional producer takes its name over."""
        await self._client.retrying(self._client.refresh)
        if self.transaction is not None:
            await self.transaction.init()
        self._watch.start(self.plan.connection.metadata_max_age_ms)

    # --- from any thread: one record

    def check_may_send(self) -> None:
        """Raises why nothing can be sent."""
        if self.is_closed:
            raise ClientClosed("producer")
        if self.transaction is not None:
            refused = self.transaction.refusal_to_send()
            if refused is not None:
                raise refused

    def prepare(
        self, record: OutgoingRecord, callback: Callback | None
    ) -> tuple[OutgoingRecord, Callback | None]:
        """Interceptors and serializers: the record as bytes, and who wants to hear of it."""
        plan = self.plan
        if self.is_plain and type(record.value) is bytes and record.key is None:
            return record, callback
        if plan.interceptors:
            for interceptor in plan.interceptors:
                record = interceptor.on_send(record)
            callback = _telling_all(plan.interceptors, callback)
        key = _serialized("key", plan.key_serializer, record.key)
        value = _serialized("value", plan.value_serializer, record.value)
        if key is record.key and value is record.value:
            return record, callback
        return OutgoingRecord(
            record.topic, value, key, record.partition, record.headers, record.timestamp_ms
        ), callback

    def open_batch(self, topic: str, key: object) -> ProducerBatch | None:
        """Where a record without headers may be added at once; None where it must go the long way.

        Only while `is_plain`. What comes next may close the batch or find it full: then its `add`
        says so.
        """
        if self.transaction is not None and self.transaction.phase is not Phase.OPEN:
            return None
        route = self._routes.get(topic)
        if route is None:
            return None
        if key is None:
            return route.turn.open
        return route.for_key(key).open if type(key) is bytes else None

    def append(
        self, route: Route, record: OutgoingRecord, callback: Callback | None = None
    ) -> Slot | None:
        """A record of bytes into its batch; None while there is no memory for it."""
        headers = record.headers
        queue = self.queue_for(route, record.partition, record.key, record.value)
        timestamp_ms = _timestamp(record.timestamp_ms)
        if callback is None and not headers:
            batch = (queue or route.turn).open
            if batch is not None:
                index = batch.add(timestamp_ms, record.key, record.value)
                if index >= 0:
                    return batch, index
        return self.accumulator.append(
            route,
            queue,
            timestamp_ms,
            record.key,
            record.value,
            headers=encode_headers(normal_headers(headers)) if headers else NO_HEADERS,
            callback=callback,
        )

    def queue_for(
        self, route: Route, partition: int | None, key: bytes | None, value: bytes | None
    ) -> PartitionQueue | None:
        """Where a record goes; None for wherever it is the turn."""
        if partition is None:
            if self.plan.partitioner is not None:
                partition = self.plan.partitioner(route.topic, key, value, len(route.queues))
            elif key is None or self._ignores_keys:
                return None
            else:
                return route.for_key(key)
        if not 0 <= partition < len(route.queues):
            raise TopicNotFound(route.topic, partition)
        return route.queues[partition]

    def buffer_full(self) -> BufferFull:
        """The error for a wait for memory that was too long."""
        return BufferFull(self.plan.settings.buffer_memory, self.plan.settings.max_block_ms)

    # --- on the loop

    async def route(self, topic: str, partition: int | None = None) -> Route:
        """The topic's partitions, asked for until they are known or `max.block.ms` is over."""
        route = self.accumulator.routes.get(topic)
        if route is not None and (partition is None or partition < len(route.queues)):
            return route
        deadline = time.monotonic() + self.plan.settings.max_block_ms / 1000
        failures = 0
        while True:
            try:
                info = await self._client.topic(topic, refresh=failures > 0, may_create=True)
                return self._watch.update(info)
            except (RequestFailed, ConnectionFailed, NoBrokerReachable) as error:
                failures += 1
                wait_s = self._client.options.retries.wait_s(failures)
                is_final = isinstance(error, RequestFailed) and not (
                    isinstance(error, TopicNotFound) or error.code.retriable
                )
                if is_final or time.monotonic() + wait_s > deadline:
                    raise
                await asyncio.sleep(wait_s)

    async def flush(self) -> None:
        """Returns when everything that was sent before has its answer, or tells what failed."""
        await self._drain()
        self._unheard.tell()

    async def _drain(self) -> None:
        with self.accumulator.lock:
            waiting = list(self.accumulator.unfinished)
        self._sender.flushing += 1
        self._sender.wake()
        try:
            for batch in waiting:
                await batch.wait_done()
        finally:
            self._sender.flushing -= 1

    async def commit(self) -> None:
        """Commits the open transaction once all its records are written."""
        transaction = self._needs_transaction()
        try:
            transaction.check_open()
            await self._drain()
            await transaction.end(is_commit=True)
        except OttlaError:
            self._unheard.forget()  # this error says it of all
            raise

    async def abort(self) -> None:
        """Aborts the open transaction; records not sent yet are never sent."""
        transaction = self._needs_transaction()
        self._sender.outcomes.fail_pending(WrongUse("the transaction was aborted"))
        await self._drain()
        self._unheard.forget()  # whoever aborts wants none of them written
        await transaction.end(is_commit=False)

    def _needs_transaction(self) -> Transaction:
        if self.transaction is None:
            raise WrongUse("transactions need a transactional_id")
        return self.transaction

    async def send_batches(self, route: Route, batches: Iterable[ProducerBatch]) -> None:
        """Takes ready-made batches into line, behind what waits; they carry bytes, no columns."""
        for batch in batches:
            deadline = time.monotonic() + self.plan.settings.max_block_ms / 1000
            while not self.accumulator.enqueue(route, batch):
                if time.monotonic() > deadline:
                    raise self.buffer_full()
                await self.accumulator.wait_memory_async(deadline - time.monotonic())
            self._sender.wake()

    async def topic(self, name: str) -> TopicInfo:
        """The topic as it is known."""
        await self.route(name)
        return await self._client.topic(name)

    def metrics(self) -> ProducerMetrics:
        """What was done so far."""
        return self._sender.counters.snapshot(
            buffered_bytes=self.accumulator.used_bytes, in_flight=self._sender.in_flight_total
        )

    async def close(self, timeout_s: float | None) -> None:
        """Sends what waits, for so long at most, ends everything, and tells what failed."""
        if self.is_closed:
            return
        self.is_closed = True
        self.is_plain = False
        try:
            async with asyncio.timeout(timeout_s):
                await self._drain()
        except TimeoutError:
            _log.info("closing the producer with records unsent after %s s", timeout_s)
        tasks = [*self._sender.close(), *self._watch.end()]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._sender.outcomes.fail_all(ClientClosed("producer", "was closed before this was sent"))
        await self.identity.close()
        await self._client.close()
        self._unheard.tell()

    # --- the picture of the cluster

    def _wake(self) -> None:
        self._sender.wake()


def _timestamp(given_ms: int | None) -> int:
    if given_ms is None:
        return time.time_ns() // 1_000_000
    if not isinstance(given_ms, int) or not 0 <= given_ms < _TIMESTAMP_END:
        raise WrongUse(f"a timestamp is in milliseconds since 1970, not {given_ms!r}")
    return given_ms


def normal_headers(headers: HeadersInput) -> Headers:
    """Headers as a record has them: pairs, in order."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((str(name), None if value is None else as_bytes(value)) for name, value in pairs)


def _serialized(what: str, serialize: Callable[[Any], bytes] | None, given: Any) -> bytes | None:
    if given is None:
        return None
    if serialize is None:
        return as_bytes(given)
    try:
        made: object = serialize(given)
    except OttlaError:
        raise
    except Exception as error:
        raise SerializationFailed(f"the {what} cannot be serialized", error) from error
    if made is None:
        return None
    if not isinstance(made, BytesLike):
        wrong = TypeError(f"its serializer gave {type(made).__name__}, and must give bytes")
        raise SerializationFailed(f"the {what} cannot be sent", wrong)
    return as_bytes(made)


def _telling_all(
    interceptors: Sequence[ProducerInterceptor], callback: Callback | None
) -> Callback:
    def tell(metadata: Any, error: OttlaError | None) -> None:
        for interceptor in interceptors:
            interceptor.on_acknowledgement(metadata, error)
        if callback is not None:
            callback(metadata, error)

    tell.is_for_user = callback is not None  # type: ignore[attr-defined]
    return tell


def with_bootstrap(keywords: dict[str, object], bootstrap: object) -> Mapping[str, object]:
    """The keywords with the brokers to begin with, where they were given by position."""
    return keywords if bootstrap is None else {"bootstrap_servers": bootstrap, **keywords}


def warn_unclosed(core: ProducerCore, what: str, source: object) -> None:
    """Somebody dropped a producer without closing it."""
    name = f"{what} of {','.join(core.plan.connection.bootstrap_servers)}"
    if core.accumulator.unfinished:
        _log.warning("%s was dropped with records unsent: close it", name)
    message = f"unclosed {name}: close it, or use it as a context"
    warnings.warn(message, ResourceWarning, stacklevel=3, source=source)
