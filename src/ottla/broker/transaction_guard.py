"""Lets transactional records into a partition only while their transaction is open there.

Without it a late record would open a transaction that nobody ends, and readers of committed
records would wait for it for ever. Clients of the second protocol version have their partitions
added here; for older ones, who add them beforehand, it is verified that they did.

The coordinator is asked where it is. An answer from another broker is old when it comes: it counts
only if no marker of the producer was written here meanwhile, and if this broker has led on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final

import msgspec
from msgspec.structs import replace

from ottla.broker.marker_delivery import Neighbours
from ottla.broker.partitions import Partitions
from ottla.broker.transaction_coordinator import TransactionCoordinator, codes_of
from ottla.broker.transaction_markers import MarkerWriter
from ottla.coordination.transaction.adding import Addition
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import BrokerId, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

IMPLIED_ADD_VERSION: Final = 5
"""The version of AddPartitionsToTxn that an implied addition counts as."""
VERIFY_VERSION: Final = 4
_RETRY_AS_NOT_ENOUGH_REPLICAS: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What older producers would not try again for; this code they do."""

Codes = dict[TopicPartition, ErrorCode]
ProducerPair = tuple[ProducerId, ProducerEpoch]


class Enrolment(Enum):
    """How partitions come into the transaction of a request, and what its version can be told."""

    BEFORE = auto()
    """The client has added them."""
    BEFORE_OR_ABORTED = auto()
    """The same, and it knows TRANSACTION_ABORTABLE."""
    IMPLIED = auto()
    """The request adds them."""


def enrolment(version: int, *, abortable_from: int, implied_from: int) -> Enrolment:
    """What a version of a request does, by the first versions that do more."""
    if version >= implied_from:
        return Enrolment.IMPLIED
    return Enrolment.BEFORE_OR_ABORTED if version >= abortable_from else Enrolment.BEFORE


class _Question(msgspec.Struct, eq=False):
    """What was asked of a coordinator elsewhere, and what became of it here meanwhile."""

    producer_id: ProducerId
    leader_epochs: dict[TopicPartition, LeaderEpoch]
    ended: set[TopicPartition]


class TransactionGuard:
    """Asks the coordinator about partitions whose log does not know the transaction yet."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        partitions: Partitions,
        neighbours: Neighbours,
        writer: MarkerWriter,
        is_verifying: Callable[[], bool],
    ) -> None:
        self._coordinator = coordinator
        self._partitions = partitions
        self._neighbours = neighbours
        self._is_verifying = is_verifying
        self._questions: set[_Question] = set()
        writer.observers.append(self._marker_written)

    def must_ask(
        self, producer: ProducerPair, partitions: Iterable[TopicPartition], how: Enrolment
    ) -> bool:
        """Whether `admit` will ask the coordinator, and so perhaps wait."""
        is_asked = how is Enrolment.IMPLIED or self._is_verifying()
        return is_asked and bool(self._unknown(producer, partitions))

    async def admit(
        self,
        transactional_id: str,
        producer: ProducerPair,
        partitions: list[TopicPartition],
        how: Enrolment,
    ) -> Codes:
        """Those partitions that may not be written to, with the reason.

        When it returns, no other event can come between the check and an append made at once.
        """
        if not self.must_ask(producer, partitions, how):
            return {}
        adds = how is Enrolment.IMPLIED
        unknown = self._unknown(producer, partitions)
        version = IMPLIED_ADD_VERSION if adds else VERIFY_VERSION
        addition = Addition(transactional_id, *producer, unknown, version)
        try:
            broker = self._coordinator.broker_of(transactional_id)
            if broker == self._coordinator.broker_id:
                codes = await self._ask_here(addition, partitions, adds=adds)
            else:
                codes = await self._ask_there(broker, addition, partitions, adds=adds)
        except OttlaError as error:
            codes = dict.fromkeys(partitions, int(error.code))
        return {each: _told(ErrorCode.of(code), how) for each, code in codes.items() if code}

    async def _ask_here(
        self, addition: Addition, partitions: list[TopicPartition], *, adds: bool
    ) -> dict[TopicPartition, int]:
        if adds:
            codes = await self._coordinator.add(addition)
        else:
            codes = await self._coordinator.verify_committed(addition)
        # The answer may have taken a while. What counts is whether it holds now, and whether
        # the transaction is still open where it was before.
        unknown = self._unknown((addition.producer_id, addition.producer_epoch), partitions)
        unsure = tuple(each for each in unknown if not codes.get(each))
        return codes | self._coordinator.verify(replace(addition, partitions=unsure))

    async def _ask_there(
        self,
        broker: BrokerId,
        addition: Addition,
        partitions: list[TopicPartition],
        *,
        adds: bool,
    ) -> dict[TopicPartition, int]:
        question = _Question(addition.producer_id, self._leader_epochs(partitions), set())
        self._questions.add(question)
        try:
            response = await self._neighbours.ask(
                broker, _request(addition, verify_only=not adds), version=addition.version
            )
        except OttlaError as error:
            raise RequestFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        finally:
            self._questions.discard(question)
        codes = _answers(response, addition)
        leader_epochs = self._leader_epochs(partitions)
        for each in partitions:
            if leader_epochs.get(each) != question.leader_epochs.get(each):
                codes[each] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif each in question.ended and not codes.get(each):
                # Whether the answer was about the transaction that just ended, nobody knows here.
                codes[each] = ErrorCode.NOT_ENOUGH_REPLICAS
        return codes

    def _marker_written(self, partition: TopicPartition, producer_id: ProducerId) -> None:
        for question in self._questions:
            if question.producer_id == producer_id:
                question.ended.add(partition)

    def _leader_epochs(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LeaderEpoch]:
        epochs = {}
        for each in partitions:
            held = self._partitions.of_topic(each.topic).get(each.partition)
            if held is not None:
                epochs[each] = held.leader_epoch
        return epochs

    def _unknown(
        self, producer: ProducerPair, partitions: Iterable[TopicPartition]
    ) -> tuple[TopicPartition, ...]:
        """Those that this broker leads and whose log has no transaction of the producer open.

        What it does not lead is refused anyhow, and is no part of the transaction for that.
        """
        return tuple(each for each in partitions if self._is_unknown(each, producer))

    def _is_unknown(self, name: TopicPartition, producer: ProducerPair) -> bool:
        held = self._partitions.of_topic(name.topic).get(name.partition)
        if held is None or not held.is_leader:
            return False
        entry = held.log.producers.get(producer[0])
        return entry is None or entry.epoch != producer[1] or entry.transaction_start is None


def _request(addition: Addition, *, verify_only: bool) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for each in addition.partitions:
        topics.setdefault(each.topic, []).append(each.partition)
    transaction = AddPartitionsToTxnTransaction(
        addition.transactional_id,
        addition.producer_id,
        addition.producer_epoch,
        verify_only,
        [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def _answers(response: object, addition: Addition) -> dict[TopicPartition, int]:
    """The code for each partition that was asked about; what is not answered is not allowed."""
    failed = dict.fromkeys(addition.partitions, int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    if not isinstance(response, AddPartitionsToTxnResponse):
        return failed
    if response.error_code:
        return dict.fromkeys(addition.partitions, response.error_code)
    for result in response.results_by_transaction:
        if result.transactional_id == addition.transactional_id:
            failed |= codes_of(result)
    return failed


def _told(error: ErrorCode, how: Enrolment) -> ErrorCode:
    """A coordinator's refusal in words that whoever writes records or offsets knows."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if how is not Enrolment.IMPLIED and error in _RETRY_AS_NOT_ENOUGH_REPLICAS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if how is Enrolment.BEFORE and error is ErrorCode.TRANSACTION_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error
