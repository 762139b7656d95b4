"""The producer for threads and scripts. Any number of threads may share one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ottla.clients.arrow.sending import TableBatches, send_table
from ottla.clients.arrow.table_sent import TableSent
from ottla.clients.blocking.loop_thread import (
    LoopThread,
    Orphan,
    close_at_exit,
    close_orphan_at_exit,
)
from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.failures import ClientClosed, Fenced, SendsFailed, WrongUse
from ottla.clients.metadata import TopicInfo
from ottla.clients.producer.accumulator import Slot
from ottla.clients.producer.batch import Callback
from ottla.clients.producer.core import (
    LEAVING_TIMEOUT_S,
    HeadersInput,
    ProducerCore,
    ProducerPlan,
    plan_producer,
    warn_unclosed,
    with_bootstrap,
)
from ottla.clients.producer.delivery import Delivery
from ottla.clients.producer.interceptors import OutgoingRecord, ProducerInterceptor
from ottla.clients.producer.metrics import ProducerMetrics
from ottla.clients.producer.routing import Partitioner
from ottla.clients.producer.transaction import Transaction
from ottla.clients.serializers import Choice
from ottla.clients.settings_source import Config
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class Producer:
    """Writes records. `with Producer("host:9092") as producer: producer.send("topic", b"value")`.

    Settings are keywords (`linger_ms=20`), or Kafka's own names in `config`: a mapping or the path
    of a properties file.
    """

    __slots__ = ("__weakref__", "_core", "_is_foreign", "_loop", "_plan")

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
        self._is_foreign = False
        self._loop = LoopThread("producer")
        try:
            self._core = self._loop.run(_open(self._plan, self._loop))
        except BaseException:
            self._loop.stop()
            raise
        close_at_exit(self)

    def close(self, timeout_s: float | None = None) -> None:
        """Sends what waits, for `timeout_s` at most, and disconnects. Once is enough.

        SendsFailed for records that failed and whose results nobody took.
        """
        if self._loop.is_foreign:
            return
        try:
            self._loop.run(self._core.close(timeout_s))
        except ClientClosed:
            return
        except SendsFailed:
            self._loop.stop()
            raise
        self._loop.stop()

    def disown(self) -> None:
        """Called in a forked process, which cannot use its parent's."""
        self._is_foreign = True
        self._core.is_plain = False

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close(LEAVING_TIMEOUT_S)
        except SendsFailed as failed:  # was logged; the error that is on its way goes first
            error.add_note(str(failed))

    def __del__(self) -> None:
        core: ProducerCore | None = getattr(self, "_core", None)
        if core is None or core.is_closed or self._loop.is_foreign:
            return
        close_orphan_at_exit(Orphan(core, self._loop))
        warn_unclosed(core, "ottla.Producer", self)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: HeadersInput = (),
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> Delivery:
        """Puts a record into its batch and returns; ask the delivery for the broker's word.

        Waits only for memory, or for a topic that is not known yet. `on_delivery` is called in
        the producer's own thread, and should be quick.
        """
        core = self._core
        if (
            core.is_plain
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
                return Delivery(batch, index)
        pairs = tuple(headers.items() if isinstance(headers, Mapping) else headers)
        record = OutgoingRecord(topic, value, key, partition, pairs, timestamp_ms)
        slot = self._send_with_care(record, on_delivery)
        return Delivery(slot[0], slot[1])

    def _send_with_care(self, record: OutgoingRecord, callback: Callback | None) -> Slot:
        core = self._core
        if self._is_foreign:
            raise ClientClosed("producer", "belongs to the process that forked this one")
        core.check_may_send()
        record, callback = core.prepare(record, callback)
        route = core.accumulator.routes.get(record.topic)
        if route is None or (record.partition or 0) >= len(route.queues):
            route = self._loop.run(core.route(record.topic, record.partition))
        deadline = 0.0
        while True:
            releases = core.accumulator.releases
            slot = core.append(route, record, callback)
            if slot is not None:
                return slot
            deadline = deadline or time.monotonic() + self._plan.settings.max_block_ms / 1000
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise core.buffer_full()
            core.accumulator.wait_memory(left_s, releases)
            core.check_may_send()

    def send_arrow(
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
        core = self._core
        if self._loop.is_foreign:
            raise ClientClosed("producer", "belongs to the process that forked this one")
        core.check_may_send()
        return send_table(core, self._loop, TableBatches(core, topic, table, partition))

    def flush(self) -> None:
        """Returns when everything sent so far has the broker's word.

        SendsFailed for records that failed and whose results nobody took.
        """
        self._loop.run(self._core.flush())

    def partitions_for(self, topic: str) -> TopicInfo:
        """The topic with its partitions and their leaders."""
        return self._loop.run(self._core.topic(topic))

    def metrics(self) -> ProducerMetrics:
        """What was done so far, in numbers."""
        return self._core.metrics()

    # --- transactions

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """`with producer.transaction():` commits at the end, or aborts on an exception."""
        self.begin_transaction()
        try:
            yield self
        except Fenced:
            raise
        except BaseException:
            self.abort_transaction()
            raise
        try:
            self.commit_transaction()
        except Fenced:
            raise
        except BaseException:
            self.abort_transaction()
            raise

    def begin_transaction(self) -> None:
        """Begins a transaction."""
        self._transaction().begin()

    def commit_transaction(self) -> None:
        """Makes the transaction's records and offsets visible together."""
        self._loop.run(self._core.commit())

    def abort_transaction(self) -> None:
        """Makes the transaction as if it had never been."""
        self._loop.run(self._core.abort())

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupPlace | str
    ) -> None:
        """Commits a consumer's offsets with the transaction; `group` is `consumer.place`."""
        place = GroupPlace(group) if isinstance(group, str) else group
        full = {
            where: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for where, offset in offsets.items()
        }
        self._loop.run(self._transaction().send_offsets(full, place))

    def _transaction(self) -> Transaction:
        transaction = self._core.transaction
        if transaction is None:
            raise WrongUse("transactions need a transactional_id")
        return transaction


async def _open(plan: ProducerPlan, loop: LoopThread) -> ProducerCore:
    core = ProducerCore(plan, loop.call_soon)
    try:
        await core.start()
    except BaseException:
        await core.close(0.0)
        raise
    return core
