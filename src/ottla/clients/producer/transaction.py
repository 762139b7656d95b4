"""A producer's transactions, from its side of the wire: begin, add, commit or abort.

Speaks the second version of the protocol (partitions are added by writing to them, and every end
raises the epoch) where the cluster has agreed on it, and the first version elsewhere.

    NEW ─init→ READY ─begin→ OPEN ─commit or abort→ READY
                              └ a record failed → FAILED ─abort→ READY
    any ─another took the name→ FENCED

Invariants:
1. Records are sent only while a transaction is open, and the end is asked for only when none is on
   its way.
2. After a failure nothing but an abort leads on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, TypeVar

from ottla.clients.client import Client
from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.coordinators import Coordinated, find_coordinator
from ottla.clients.failures import (
    Fenced,
    TransactionMustAbort,
    WrongUse,
    check_answer,
    is_worth_retrying,
)
from ottla.clients.producer.batch import ProducerBatch
from ottla.clients.producer.settings import ProducerSettings
from ottla.clients.producer.transaction_requests import (
    add_partitions_request,
    check_added,
    check_offsets,
    offsets_request,
)
from ottla.clients.retry import retry
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.message import VERSION_MAX
from ottla.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from ottla.records.builder import ProducerStamp

T = TypeVar("T")

TRANSACTION_FEATURE: Final = "transaction.version"
_SECOND_VERSION: Final = 2
_ADD_VERSION_MAX: Final = 3
_EARLIER_END_MAX: Final = 4
_EARLIER_OFFSETS_MAX: Final = 4
_SECOND_OFFSETS_MIN: Final = 5
_RAISE_EPOCH_MIN: Final = 3
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class Phase(Enum):
    """Where the producer stands."""

    NEW = "new"
    READY = "ready"
    OPEN = "open"
    FAILED = "failed"
    FENCED = "fenced"


class Transaction:
    """The transactions of one transactional id, one after the other."""

    __slots__ = (
        "_added",
        "_client",
        "_coordinator",
        "_error",
        "_has_offsets",
        "_needs_new_epoch",
        "_policy",
        "_settings",
        "_task",
        "_wake",
        "_wanted",
        "adds_by_writing",
        "identity",
        "phase",
    )

    is_transactional = True

    def __init__(
        self, client: Client, settings: ProducerSettings, wake: Callable[[], None]
    ) -> None:
        self._client = client
        self._settings = settings
        self._wake = wake
        self._policy = replace(
            client.options.retries,
            first_wait_s=0.02,
            total_s=settings.max_block_ms / 1000,
        )
        self.phase = Phase.NEW
        self.identity: ProducerStamp | None = None
        self.adds_by_writing = False
        self._coordinator: BrokerId | None = None
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._has_offsets = False
        self._needs_new_epoch = False
        self._error: OttlaError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def _id(self) -> str:
        return self._settings.transactional_id

    # --- what the sender asks

    def may_send(self, where: TopicPartition) -> bool:
        """Whether the partition is in the transaction, or joins it by being written to."""
        if self.phase is not Phase.OPEN:
            return False
        if where in self._added:
            return True
        if self.adds_by_writing:
            self._added.add(where)
            return True
        self._wanted.add(where)
        return False

    def request(self) -> None:
        """Adds the partitions that are waited for."""
        if self._wanted and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._add_wanted())

    def failed(self, error: OttlaError, batch: ProducerBatch) -> None:
        """A record of the transaction is not written: it can only be aborted."""
        if isinstance(error, Fenced):
            self.phase, self._error = Phase.FENCED, error
        elif self.phase is Phase.OPEN:
            self.phase, self._error = Phase.FAILED, error
        if batch.base_sequence >= 0:
            self._needs_new_epoch = True

    def blocked(self) -> OttlaError | None:
        """Why what waits will never be sent."""
        return self._trouble() if self.phase in (Phase.FAILED, Phase.FENCED) else None

    def refusal_to_send(self) -> OttlaError | None:
        """Why nothing can be sent now; None if it can."""
        match self.phase:
            case Phase.OPEN:
                return None
            case Phase.FAILED | Phase.FENCED:
                return self._trouble()
            case _:
                return WrongUse("records are sent inside a transaction: begin one first")

    # --- its life

    async def init(self) -> None:
        """Takes the name over from whoever had it before, and ends what they left open."""
        if self.phase is not Phase.NEW:
            return
        self.identity = await self._init(None)
        connection = await self._client.connection_to(self._coordinator or BrokerId(-3))
        level = connection.versions.features.get(TRANSACTION_FEATURE, 0)
        self.adds_by_writing = level >= _SECOND_VERSION
        self.phase = Phase.READY

    def begin(self) -> None:
        """The next records belong together."""
        if self.phase is Phase.FENCED:
            raise self._trouble()
        if self.phase is not Phase.READY:
            raise WrongUse(f"a transaction cannot begin: the producer is {self.phase.value}")
        self.phase = Phase.OPEN

    def check_open(self) -> None:
        """Raises why the transaction cannot commit."""
        if self.phase in (Phase.FAILED, Phase.FENCED):
            raise self._trouble()
        if self.phase is not Phase.OPEN:
            raise WrongUse("no transaction is open")

    async def end(self, *, is_commit: bool) -> None:
        """Commits or aborts; every record must have its answer."""
        if is_commit:
            self.check_open()
        elif self.phase is Phase.FENCED:
            raise self._trouble()
        elif self.phase not in (Phase.OPEN, Phase.FAILED):
            raise WrongUse("no transaction is open")
        await self._settle_adding()
        if self._added or self._has_offsets:
            await self._end(is_commit=is_commit)
        elif self._needs_new_epoch:
            self.identity = await self._init(self.identity)
        self._added.clear()
        self._wanted.clear()
        self._has_offsets = self._needs_new_epoch = False
        self._error = None
        self.phase = Phase.READY

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], place: GroupPlace
    ) -> None:
        """Commits a group's offsets with the transaction."""
        self.check_open()
        identity = self._identity()
        if not self.adds_by_writing:
            request = AddOffsetsToTxnRequest(
                transactional_id=self._id,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                group_id=place.group_id,
            )
            answer = await self._asking(lambda: self._ask_add_offsets(request))
            check_answer(answer.error_code, f"the offsets of group {place.group_id!r}")
        self._has_offsets = True
        await self._asking(lambda: self._commit_offsets(offsets, place))

    async def close(self) -> None:
        """Stops what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # --- requests

    async def _init(self, former: ProducerStamp | None) -> ProducerStamp:
        request = InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=former.producer_id if former else -1,
            producer_epoch=former.producer_epoch if former else -1,
        )
        at_least = _RAISE_EPOCH_MIN if former else 0

        async def attempt() -> ProducerStamp:
            response = await self._client.call(
                request, InitProducerIdResponse, to=await self._find(), at_least=at_least
            )
            check_answer(response.error_code, f"transactional id {self._id!r}")
            return ProducerStamp(
                response.producer_id, response.producer_epoch, 0, is_transactional=True
            )

        return await self._asking(attempt)

    async def _end(self, *, is_commit: bool) -> None:
        identity = self._identity()
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=is_commit,
        )
        at_most = VERSION_MAX if self.adds_by_writing else _EARLIER_END_MAX

        async def attempt() -> EndTxnResponse:
            response = await self._client.call(
                request, EndTxnResponse, to=await self._find(), at_most=at_most
            )
            check_answer(response.error_code, f"ending a transaction of {self._id!r}")
            return response

        response = await self._asking(attempt)
        if self.adds_by_writing and response.producer_id >= 0:
            self.identity = ProducerStamp(
                response.producer_id, response.producer_epoch, 0, is_transactional=True
            )
        elif self._needs_new_epoch:
            self.identity = await self._init(identity)

    async def _add_wanted(self) -> None:
        wanted = sorted(self._wanted)
        identity = self._identity()

        async def attempt() -> None:
            response = await self._client.call(
                add_partitions_request(self._id, identity, wanted),
                AddPartitionsToTxnResponse,
                to=await self._find(),
                at_most=_ADD_VERSION_MAX,
            )
            check_added(response, self._id)

        try:
            await self._asking(attempt)
        except OttlaError as error:
            if self.phase is Phase.OPEN:
                self.phase, self._error = Phase.FAILED, error
        else:
            self._added.update(wanted)
            self._wanted.difference_update(wanted)
        self._wake()

    async def _settle_adding(self) -> None:
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _ask_add_offsets(self, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
        response = await self._client.call(request, AddOffsetsToTxnResponse, to=await self._find())
        check_answer(response.error_code, f"the offsets of group {request.group_id!r}")
        return response

    async def _commit_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], place: GroupPlace
    ) -> None:
        is_second = self.adds_by_writing
        response = await self._client.call(
            offsets_request(self._id, self._identity(), offsets, place),
            TxnOffsetCommitResponse,
            to=await find_coordinator(self._client, Coordinated.GROUP, place.group_id),
            at_least=_SECOND_OFFSETS_MIN if is_second else 0,
            at_most=_SECOND_OFFSETS_MIN if is_second else _EARLIER_OFFSETS_MAX,
        )
        check_offsets(response, place.group_id)

    async def _find(self) -> BrokerId:
        if self._coordinator is None:
            self._coordinator = await find_coordinator(
                self._client, Coordinated.TRANSACTION, self._id
            )
        return self._coordinator

    async def _asking(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Tries until it works or can not; what can not is remembered."""

        async def look_again(_: OttlaError) -> None:
            self._coordinator = None

        try:
            return await retry(self._policy, attempt, before_again=look_again)
        except OttlaError as error:
            if error.code in _FENCED:
                self.phase, self._error = Phase.FENCED, Fenced(self._id, error.code)
                raise self._error from error
            if self.phase is Phase.OPEN and not is_worth_retrying(error):
                self.phase, self._error = Phase.FAILED, error
                raise TransactionMustAbort(error) from error
            raise

    def _identity(self) -> ProducerStamp:
        if self.identity is None:
            raise WrongUse("the transactional producer was not started")
        return self.identity

    def _trouble(self) -> OttlaError:
        error = self._error or WrongUse("the transaction has failed")
        return error if isinstance(error, Fenced) else TransactionMustAbort(error)
