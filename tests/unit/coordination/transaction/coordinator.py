"""A transaction shard with a log that commits at once, and short words for what clients do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ottla.coordination.decision import Caller, NewRecord, StartTimer, Ticket
from ottla.coordination.transaction.adding import Addition
from ottla.coordination.transaction.decision import TransactionDecision, WriteMarkers
from ottla.coordination.transaction.records import VALUE_VERSION_MAX, record_of
from ottla.coordination.transaction.shard import TransactionShard
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import Producer, Transaction
from ottla.errors import ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.settings.coordination import TransactionSettings

ID = "transfers"
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TIMEOUT_MS = 60_000
FIRST, SECOND = 4, 5
"""Versions of EndTxn (and, for SECOND, of AddPartitionsToTxn) that stand for the protocol's."""


def pair(producer_id: int, epoch: int) -> Producer:
    return Producer(ProducerId(producer_id), ProducerEpoch(epoch))


def caller(version: int) -> Caller:
    return Caller("client", "/10.0.0.1", version)


@dataclass
class Coordinator:
    """Does at once what a shard decides, and remembers it."""

    settings: TransactionSettings = field(default_factory=TransactionSettings)
    now_ms: int = 1_000_000
    coordinator_epoch: int = 7
    log: list[NewRecord] = field(default_factory=list)
    markers: list[WriteMarkers] = field(default_factory=list)
    timers: list[StartTimer] = field(default_factory=list)
    fails_with: ErrorCode | None = None
    """The error with which the log refuses the next records."""
    version_max: int = VALUE_VERSION_MAX

    def __post_init__(self) -> None:
        self.shard = TransactionShard(self.settings, self.coordinator_epoch, self.version_max)
        self._producer_ids = iter(range(100, 10_000))
        self._tickets = iter(range(10_000))

    def restart(self) -> TransactionDecision:
        """A new shard takes over the log."""
        self.coordinator_epoch += 1
        self.shard = TransactionShard(self.settings, self.coordinator_epoch, self.version_max)
        for record in self.log:
            self.shard.replay(record.key, record.value)
        self.markers.clear()
        return self.do(self.shard.on_loaded(self.now_ms))

    def do(self, decision: TransactionDecision) -> TransactionDecision:
        """Carry a decision out, as the runtime does."""
        if decision.records and self.fails_with is not None:
            decision = self.shard.append_failed(decision, self.fails_with)
            self.fails_with = None
            assert not decision.records
        for record in decision.records:
            self.log.append(record)
            self.shard.replay(record.key, record.value)
        self.markers += decision.markers
        self.timers += [timer for timer in decision.timers if isinstance(timer, StartTimer)]
        return decision

    def stored(self, transaction: Transaction) -> None:
        """The log already says this."""
        self.do(TransactionDecision((record_of(transaction),)))

    def transaction(self, transactional_id: str = ID) -> Transaction:
        return self.shard._transactions[transactional_id]

    @property
    def state(self) -> State:
        return self.transaction().state

    def init(self, expected: Producer | None = None, *, version: int = 5, **fields: Any) -> Any:
        """InitProducerId; the response."""
        request = InitProducerIdRequest(
            transactional_id=ID,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=expected.producer_id if expected else -1,
            producer_epoch=expected.epoch if expected else -1,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self._answer(
            self.shard.init_producer_id(
                request, caller(version), self._ticket(), self.now_ms, self._fresh()
            )
        )

    def started(self, **fields: Any) -> Producer:
        """A producer that has its id and epoch."""
        return self.given(self.init(**fields))

    def add(
        self, producer: Producer, partitions: Iterable[TopicPartition], version: int = SECOND
    ) -> ErrorCode:
        addition = _addition(producer, partitions, version)
        decision = self.shard.add_partitions(addition, self._ticket(), self.now_ms)
        (code,) = set(_codes(self._answer(decision)).values())
        return code

    def verify(
        self, producer: Producer, partitions: Iterable[TopicPartition], version: int = 4
    ) -> dict[TopicPartition, ErrorCode]:
        addition = _addition(producer, partitions, version)
        return _codes(self._answer(self.shard.verify_partitions(addition, self._ticket())))

    def add_offsets(
        self, producer: Producer, partition: TopicPartition, version: int = 4
    ) -> ErrorCode:
        request = AddOffsetsToTxnRequest(ID, producer.producer_id, producer.epoch, "group")
        decision = self.shard.add_offsets(
            request, caller(version), self._ticket(), self.now_ms, partition
        )
        return ErrorCode(self._answer(decision).error_code)

    def end(self, producer: Producer, *, commit: bool, version: int = SECOND) -> Any:
        """EndTxn; the response."""
        request = EndTxnRequest(ID, producer.producer_id, producer.epoch, commit)
        return self._answer(
            self.shard.end_txn(request, caller(version), self._ticket(), self.now_ms, self._fresh())
        )

    def write_markers(self) -> None:
        """All markers that were asked for reach their partitions."""
        while self.markers:
            markers = self.markers.pop()
            self.report(markers, markers.partitions)

    def report(self, markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> None:
        self.do(self.shard.markers_written(markers, partitions, self.now_ms))

    def finish(self, producer: Producer, *, commit: bool, version: int = SECOND) -> Producer:
        """End a transaction with all its markers; the pair to go on with."""
        response = self.end(producer, commit=commit, version=version)
        assert response.error_code == ErrorCode.NONE
        self.write_markers()
        return self.given(response) if version >= SECOND else producer

    def time_out(self) -> None:
        """The open transaction's time passes, and somebody looks."""
        self.now_ms += TIMEOUT_MS + 1
        self.do(self.shard.abort_timed_out(self.now_ms))

    @staticmethod
    def given(response: Any) -> Producer:
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code).name
        return pair(response.producer_id, response.producer_epoch)

    def _answer(self, decision: TransactionDecision) -> Any:
        (reply,) = self.do(decision).replies
        return reply.response

    def _ticket(self) -> Ticket:
        return Ticket(next(self._tickets))

    def _fresh(self) -> ProducerId | None:
        needed = self.shard.needs_producer_id(ID)
        return ProducerId(next(self._producer_ids)) if needed else None


def _addition(producer: Producer, partitions: Iterable[TopicPartition], version: int) -> Addition:
    return Addition(ID, producer.producer_id, producer.epoch, tuple(partitions), version)


def _codes(result: AddPartitionsToTxnResult) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode(each.partition_error_code)
        for topic in result.topic_results
        for each in topic.results_by_partition
    }
