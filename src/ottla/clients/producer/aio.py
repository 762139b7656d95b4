"""The producer for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ottla.clients.arrow.sending import TableBatches, send_table_async
from ottla.clients.arrow.table_sent import TableSent
from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.failures import ClientClosed, Fenced, SendsFailed, WrongUse
from ottla.clients.metadata import TopicInfo
from ottla.clients.producer.accumulator import Slot
from ottla.clients.producer.batch import Callback, RecordMetadata
from ottla.clients.producer.core import (
    LEAVING_TIMEOUT_S,
    HeadersInput,
    ProducerCore,
    plan_producer,
    warn_unclosed,
    with_bootstrap,
)
from ottla.clients.producer.delivery import AwaitableDelivery
from ottla.clients.producer.interceptors import OutgoingRecord, ProducerInterceptor
from ottla.clients.producer.metrics import ProducerMetrics
from ottla.clients.producer.routing import Partitioner
from ottla.clients.serializers import Choice
from ottla.clients.settings_source import Config
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class Producer:
    """Writes records. `async with Producer("host:9092") as producer: await producer.send(...)`.

    Settings are keywords (`linger_ms=20`), or Kafka's own names in `config`: a mapping or the path
    of a properties file.
    """

    __slots__ = ("_core", "_plan")

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: Config = None,
        key_serializer: Choice = None,
        value_serializer: Choice = None,
        partitioner: Partitioner | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        **settings: object,
    ) -> None:
        self._plan = plan_producer(
            config,
            with_bootstrap(settings, bootstrap_servers),
            serializers=(key_serializer, value_serializer),
            partitioner=partitioner,
            interceptors=interceptors,
        )
        self._core: ProducerCore | None = None

    async def start(self) -> None:
        """Connects; entering the context does the same."""
        if self._core is None:
            core = ProducerCore(self._plan)
            try:
                await core.start()
            except BaseException:
                await core.close(0.0)
                raise
            self._core = core

    async def close(self, timeout_s: float | None = None) -> None:
        """Sends what waits, for `timeout_s` at most, and disconnects.

        SendsFailed for records that failed and whose results nobody took.
        """
        if self._core is not None:
            await self._core.close(timeout_s)

    async def __aenter__(self) -> Producer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
            return
        try:
            await self.close(LEAVING_TIMEOUT_S)
        except SendsFailed as failed:  # was logged; the error that is on its way goes first
            error.add_note(str(failed))

    def __del__(self) -> None:
        core: ProducerCore | None = getattr(self, "_core", None)
        if core is not None and not core.is_closed:
            warn_unclosed(core, "ottla.aio.Producer", self)

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: HeadersInput = (),
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> AwaitableDelivery:
        """Puts a record into its batch and returns; `await` the delivery for the broker's word.

        Waits only for memory, or for a topic that is not known yet.
        """
        core = self._core
        if (
            core is not None
            and core.is_plain
            and partition is None
            and timestamp_ms is None
            and not headers
            and (batch := core.open_batch(topic, key)) is not None
        ):
            now_ms = time_ns() // 1_000_000
            if on_delivery is None:
                index = batch.add(now_ms, key, value)
            else:
                index = core.accumulator.add_told(batch, now_ms, key, value, on_delivery)
            if index >= 0:
                return AwaitableDelivery(batch, index)
        core = self._running()
        core.check_may_send()
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        record = OutgoingRecord(topic, value, key, partition, tuple(pairs), timestamp_ms)
        slot = await self._send_with_care(core, record, on_delivery)
        if slot[1] == 0:
            await asyncio.sleep(0)  # a batch began: let the one before it be sent
        return AwaitableDelivery(slot[0], slot[1])

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: HeadersInput = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Sends one record and waits until it is written."""
        delivery = await self.send(
            topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return await delivery

    async def _send_with_care(
        self, core: ProducerCore, record: OutgoingRecord, callback: Callback | None
    ) -> Slot:
        record, callback = core.prepare(record, callback)
        route = await core.route(record.topic, record.partition)
        deadline = time.monotonic() + self._plan.settings.max_block_ms / 1000
        while (slot := core.append(route, record, callback)) is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise core.buffer_full()
            await core.accumulator.wait_memory_async(left_s)
        return slot

    async def send_arrow(
        self,
        topic: str,
        table: pyarrow.Table | pyarrow.RecordBatch | pyarrow.RecordBatchReader,
        *,
        partition: int | None = None,
    ) -> TableSent:
        """Sends whole tables and waits until they are written: where, or TableNotSent.

        Columns are `value` or `key` or both, of bytes or text, and perhaps `timestamp`, `headers`
        and `partition`; rows without a partition are placed as single records are. Each partition
        gets its rows in order, behind what was sent before. Serializers and interceptors are not
        used.
        """
        core = self._running()
        core.check_may_send()
        return await send_table_async(core, TableBatches(core, topic, table, partition))

    async def flush(self) -> None:
        """Returns when everything sent so far has the broker's word.

        SendsFailed for records that failed and whose results nobody took.
        """
        await self._running().flush()

    async def partitions_for(self, topic: str) -> TopicInfo:
        """The topic with its partitions and their leaders."""
        return await self._running().topic(topic)

    def metrics(self) -> ProducerMetrics:
        """What was done so far, in numbers."""
        return self._running().metrics()

    # --- transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Producer]:
        """`async with producer.transaction():` commits at the end, or aborts on an exception."""
        self.begin_transaction()
        try:
            yield self
        except Fenced:
            raise
        except BaseException:
            await self.abort_transaction()
            raise
        try:
            await self.commit_transaction()
        except Fenced:
            raise
        except BaseException:
            await self.abort_transaction()
            raise

    def begin_transaction(self) -> None:
        """Begins a transaction."""
        transaction = self._running().transaction
        if transaction is None:
            raise WrongUse("transactions need a transactional_id")
        transaction.begin()

    async def commit_transaction(self) -> None:
        """Makes the transaction's records and offsets visible together."""
        await self._running().commit()

    async def abort_transaction(self) -> None:
        """Makes the transaction as if it had never been."""
        await self._running().abort()

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupPlace | str
    ) -> None:
        """Commits a consumer's offsets with the transaction; `group` is `consumer.place`."""
        transaction = self._running().transaction
        if transaction is None:
            raise WrongUse("transactions need a transactional_id")
        place = GroupPlace(group) if isinstance(group, str) else group
        full = {
            where: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for where, offset in offsets.items()
        }
        await transaction.send_offsets(full, place)

    def _running(self) -> ProducerCore:
        if self._core is None:
            raise ClientClosed("producer", "was not started: use it as a context, or call start")
        return self._core
