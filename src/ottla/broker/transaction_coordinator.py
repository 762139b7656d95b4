"""The transaction coordinator's shards as the runtime wants them, and their duties over time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.coordinator import Coordinator, InternalTopic
from ottla.broker.marker_delivery import MarkerDelivery
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.shard_runtime import COMMIT_SECONDS_MAX, ShardRuntime
from ottla.broker.skipped_records import SkippedRecords
from ottla.cluster.producer_ids import ProducerIds
from ottla.cluster.store import StoreError
from ottla.coordination.decision import NewRecord, Ticket, TimerKey
from ottla.coordination.transaction.adding import Addition
from ottla.coordination.transaction.decision import NOTHING, TransactionDecision, WriteMarkers
from ottla.coordination.transaction.shard import TransactionShard
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.clock import Clock
from ottla.model.ids import ProducerId, TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp
from ottla.settings.coordination import TransactionSettings

TRANSACTIONS_TOPIC: Final = "__transaction_state"
_NO_TICKET: Final = Ticket(0)


class TransactionShardOnLog:
    """A transaction shard, fed from the log."""

    def __init__(self, shard: TransactionShard, delivery: MarkerDelivery, clock: Clock) -> None:
        self.transactions = shard
        self._delivery = delivery
        self._clock = clock

    def replay_batch(self, batch: RecordBatch, skipped: SkippedRecords) -> None:
        if batch.is_control:
            return
        for record in batch.records():
            try:
                self.transactions.replay(record.key or b"", record.value)
            except Exception as error:  # whatever somebody wrote must not stop all other ids
                skipped.add(record.offset, error)

    def replay(self, record: NewRecord, _producer: ProducerStamp) -> None:
        self.transactions.replay(record.key, record.value)

    def append_failed(self, decision: TransactionDecision, code: ErrorCode) -> TransactionDecision:
        return self.transactions.append_failed(decision, code)

    def timer_fired(self, key: TimerKey, now_ms: int) -> TransactionDecision:
        return self.transactions.timer_fired(key, now_ms)

    def loaded(self, now_ms: int) -> TransactionDecision:
        return self.transactions.on_loaded(now_ms)

    def forget(self, _ticket: Ticket, _now_ms: int) -> TransactionDecision:
        """Nobody waits in a transaction shard for anything but the commit of its records."""
        return NOTHING

    def committed(self, decision: TransactionDecision, runtime: ShardRuntime) -> None:
        for markers in decision.markers:
            self._delivery.begin(markers, Ending(self.transactions, runtime, self._clock))


class Ending:
    """A shard as the one that waits for the markers of an ending."""

    def __init__(self, shard: TransactionShard, runtime: ShardRuntime, clock: Clock) -> None:
        self._shard = shard
        self._runtime = runtime
        self._clock = clock

    @property
    def is_waiting(self) -> bool:
        return not self._runtime.is_closed

    def written(self, markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> None:
        decision = self._shard.markers_written(markers, partitions, self._clock.now_ms())
        self._runtime.carry_out(decision)


class TransactionCoordinator(Coordinator[TransactionShardOnLog]):
    """The coordinator of all transactional ids that fall on this broker."""

    def __init__(
        self, partitions: Partitions, view: ClusterView, clock: Clock, delivery: MarkerDelivery
    ) -> None:
        settings = view.settings.transactions
        version_max = view.settings.replication.protocol_level.transaction_value_version

        def make_shard(partition: Partition) -> TransactionShardOnLog:
            shard = TransactionShard(settings, partition.leader_epoch, version_max)
            return TransactionShardOnLog(shard, delivery, clock)

        topic = InternalTopic(
            TRANSACTIONS_TOPIC,
            settings.transaction_state_log_num_partitions,
            settings.transaction_state_log_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
            COMMIT_SECONDS_MAX,
        )
        super().__init__(topic, make_shard, partitions, view, clock)

    async def add(self, addition: Addition) -> dict[TopicPartition, int]:
        """Makes partitions part of a transaction; the error code of each."""
        running = self.find(addition.transactional_id)
        unknown = self._unknown(addition)
        if unknown:
            # A partition that is not known here would count as gone when the transaction ends.
            refused = dict.fromkeys(addition.partitions, int(ErrorCode.OPERATION_NOT_ATTEMPTED))
            return refused | dict.fromkeys(unknown, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        shard = running.shard.transactions
        result = await running.runtime.ask(
            lambda ticket, now_ms: shard.add_partitions(addition, ticket, now_ms)
        )
        assert isinstance(result, AddPartitionsToTxnResult)
        return codes_of(result)

    def _unknown(self, addition: Addition) -> list[TopicPartition]:
        image = self._view.image
        return [
            each
            for each in addition.partitions
            if image.partition(each.topic, each.partition) is None
        ]

    async def verify_committed(self, addition: Addition) -> dict[TopicPartition, int]:
        """Whether partitions are part of a transaction, beyond what could still be lost."""
        running = self.find(addition.transactional_id)
        shard = running.shard.transactions
        result = await running.runtime.ask(
            lambda ticket, _now_ms: shard.verify_partitions(addition, ticket)
        )
        assert isinstance(result, AddPartitionsToTxnResult)
        return codes_of(result)

    def verify(self, addition: Addition) -> dict[TopicPartition, int]:
        """Whether partitions are part of a transaction right now; the error code of each."""
        shard = self.find(addition.transactional_id).shard.transactions
        (reply,) = shard.verify_partitions(addition, _NO_TICKET).replies
        assert isinstance(reply.response, AddPartitionsToTxnResult)
        return codes_of(reply.response)


class TransactionDuties:
    """Ends transactions that take too long and forgets ids that nobody uses."""

    def __init__(
        self, coordinator: TransactionCoordinator, settings: TransactionSettings, clock: Clock
    ) -> None:
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins both."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._abort()), loop.create_task(self._expire())]

    async def stop(self) -> None:
        """Ends both."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _abort(self) -> None:
        while True:
            await asyncio.sleep(self._settings.transaction_abort_interval_ms / 1000)
            # A log that was opened late or anew is not told of; its endings must be taken up too.
            self._coordinator.update()
            for running in self._coordinator:
                shard = running.shard.transactions
                while running.runtime.is_ready:
                    decision = shard.abort_timed_out(self._clock.now_ms())
                    if decision == NOTHING or not running.runtime.carry_out(decision):
                        break
                    await asyncio.sleep(0)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(self._settings.transaction_expiry_interval_ms / 1000)
            for running in self._coordinator:
                shard = running.shard.transactions
                while running.runtime.is_ready:
                    decision = shard.expire_transactional_ids(self._clock.now_ms())
                    if decision == NOTHING or not running.runtime.carry_out(decision):
                        break
                    await asyncio.sleep(0)


async def fresh_producer_id(producer_ids: ProducerIds) -> ProducerId:
    """An id that no producer has had. While the store does not answer, clients are to ask again,
    the same broker: no other knows more."""
    try:
        return await producer_ids.next()
    except StoreError as error:
        raise RequestFailed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error


def codes_of(result: AddPartitionsToTxnResult) -> dict[TopicPartition, int]:
    """The error code of each partition of one transaction."""
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in result.topic_results
        for each in topic.results_by_partition
    }
