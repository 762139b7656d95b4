"""Lets transactional records into a partition only while their transaction is open there.

Without it a late record would open a transaction that nobody ends, and readers of committed
records would wait for it for ever. Clients of the second protocol version have their partitions
added here; for older ones, who add them beforehand, it is verified that they did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from ottla.broker.partitions import Partitions
from ottla.broker.transaction_coordinator import TransactionCoordinator
from ottla.coordination.transaction.adding import Addition
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition

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


class TransactionGuard:
    """Asks the coordinator about partitions whose log does not know the transaction yet."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        partitions: Partitions,
        is_verifying: Callable[[], bool],
    ) -> None:
        self._coordinator = coordinator
        self._partitions = partitions
        self._is_verifying = is_verifying

    def must_ask(
        self,
        producer: tuple[ProducerId, ProducerEpoch],
        partitions: Iterable[TopicPartition],
        *,
        adds: bool,
    ) -> bool:
        """Whether `admit` will ask the coordinator, and so perhaps wait."""
        return (adds or self._is_verifying()) and bool(self._unknown(producer, partitions))

    async def admit(
        self,
        transactional_id: str,
        producer: tuple[ProducerId, ProducerEpoch],
        partitions: list[TopicPartition],
        *,
        adds: bool,
    ) -> Codes:
        """Those partitions that may not be written to, with the reason.

        When it returns, no other event can come between the check and an append made at once.
        """
        if not self.must_ask(producer, partitions, adds=adds):
            return {}
        unknown = self._unknown(producer, partitions)
        version = IMPLIED_ADD_VERSION if adds else VERIFY_VERSION
        addition = Addition(transactional_id, *producer, unknown, version)
        try:
            if adds:
                codes = await self._coordinator.add(addition)
            else:
                codes = await self._coordinator.verify_committed(addition)
            # The answer may have taken a while. What counts is whether it holds now, and whether
            # the transaction is still open where it was before.
            unknown = self._unknown(producer, partitions)
            unsure = tuple(each for each in unknown if not codes.get(each))
            codes |= self._coordinator.verify(replace(addition, partitions=unsure))
        except OttlaError as error:
            codes = dict.fromkeys(partitions, int(error.code))
        return {each: _told(code, adds=adds) for each, code in codes.items() if code}

    def _unknown(
        self, producer: tuple[ProducerId, ProducerEpoch], partitions: Iterable[TopicPartition]
    ) -> tuple[TopicPartition, ...]:
        return tuple(each for each in partitions if not self._is_open(each, producer))

    def _is_open(self, name: TopicPartition, producer: tuple[ProducerId, ProducerEpoch]) -> bool:
        held = self._partitions.of_topic(name.topic).get(name.partition)
        entry = None if held is None else held.log.producers.get(producer[0])
        return (
            entry is not None and entry.epoch == producer[1] and entry.transaction_start is not None
        )


def _told(code: int, *, adds: bool) -> ErrorCode:
    error = ErrorCode.of(code)
    if not adds and error in _RETRY_AS_NOT_ENOUGH_REPLICAS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if not adds and error is ErrorCode.TRANSACTION_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return error
