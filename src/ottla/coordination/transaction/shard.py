"""The transactional ids of one partition of __transaction_state: routes each event to its rules.

A request is judged by `init.py`, `adding.py` or `ending.py`, which give the transaction's next
value or raise; here that becomes a decision. Only `replay` changes what is kept. Beside it there is
one thing in memory, the markers under way, which `append_failed` takes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.coordination.decision import Caller, NewRecord, Reply, StartTimer, Ticket, TimerKey
from ottla.coordination.transaction import adding, answers, listing
from ottla.coordination.transaction.adding import Addition
from ottla.coordination.transaction.decision import NOTHING, TransactionDecision, WriteMarkers
from ottla.coordination.transaction.ending import ENDING_BUMPS_FROM, end, time_out
from ottla.coordination.transaction.init import check_init, init
from ottla.coordination.transaction.markers import MarkersUnderWay
from ottla.coordination.transaction.records import (
    VALUE_VERSION_MAX,
    record_of,
    tombstone_of,
    transaction_of,
    transactional_id_of,
)
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import Transaction
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.describe_transactions import TransactionState
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ottla.settings.coordination import TransactionSettings

ENDED_PER_CALL_MAX: Final = 500
"""How many transactions one call may time out or forget; the caller calls again at its limit."""
COMPLETION_RETRY_MS: Final = 500
_COMPLETION_TIMER: Final = "complete"
_FIRST_PROTOCOL: Final = 0


class TransactionShard:
    """The transaction coordinator of one partition, while this broker leads it."""

    __slots__ = (
        "_markers",
        "_ongoing",
        "_settings",
        "_taken_over_ms",
        "_transactions",
        "_version_max",
    )

    def __init__(
        self,
        settings: TransactionSettings,
        coordinator_epoch: int,
        version_max: int = VALUE_VERSION_MAX,
    ) -> None:
        self._settings = settings
        self._version_max = version_max
        """The newest version of records that every broker can read."""
        self._transactions: dict[str, Transaction] = {}
        self._ongoing: set[str] = set()
        self._taken_over_ms: dict[str, int] = {}
        """When what an earlier coordinator had open was found here: its clock may be another one,
        so that neither side of the time-out can be trusted but from then on."""
        self._markers = MarkersUnderWay(coordinator_epoch)

    # --- the log ---------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take over what a record says, whether it was just written or read at the start."""
        transactional_id = transactional_id_of(key)
        if transactional_id is None:
            return
        if value is None:
            self._transactions.pop(transactional_id, None)
            self._closed(transactional_id)
            return
        transaction = transaction_of(transactional_id, value)
        self._transactions[transactional_id] = transaction
        if transaction.state is State.ONGOING:
            self._ongoing.add(transactional_id)
        else:
            self._closed(transactional_id)
        if not transaction.state.is_prepared:
            self._markers.forget(transactional_id)

    def _closed(self, transactional_id: str) -> None:
        self._ongoing.discard(transactional_id)
        self._taken_over_ms.pop(transactional_id, None)

    def on_loaded(self, now_ms: int) -> TransactionDecision:
        """The log has been read: what was decided but not finished is taken up again, and what is
        open has its time from now on."""
        self._taken_over_ms = dict.fromkeys(self._ongoing, now_ms)
        prepared = [each for each in self._transactions.values() if each.state.is_prepared]
        markers = [self._markers.begin(each) for each in prepared]
        return TransactionDecision(
            tuple(self._record(each.completed(now_ms)) for each in prepared if not each.partitions),
            markers=tuple(each for each in markers if each.partitions),
        )

    def append_failed(self, decision: TransactionDecision, code: ErrorCode) -> TransactionDecision:
        """The records of a decision were not written: nothing that rests on them holds."""
        # Markers that were taken up again after a load rest on a record of long ago.
        standing = [each for each in decision.markers if self._is_prepared(each.transactional_id)]
        for each in decision.markers:
            if each not in standing:
                self._markers.forget(each.transactional_id)
        ids = (transactional_id_of(record.key) for record in decision.records)
        return TransactionDecision(
            replies=tuple(
                Reply(reply.ticket, answers.not_recorded(reply.response, code))
                for reply in decision.replies
            ),
            timers=tuple(
                StartTimer((_COMPLETION_TIMER, transactional_id), COMPLETION_RETRY_MS)
                for transactional_id in ids
                if transactional_id is not None and self._markers.is_all_written(transactional_id)
            ),
            markers=tuple(standing),
        )

    # --- requests --------------------------------------------------------------------------------

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether a request for this id should come with a fresh producer id."""
        transaction = self._transactions.get(transactional_id)
        return transaction is None or transaction.holder.is_exhausted

    def init_producer_id(
        self,
        request: InitProducerIdRequest,
        caller: Caller,
        ticket: Ticket,
        now_ms: int,
        new_producer_id: ProducerId | None,
    ) -> TransactionDecision:
        """Give a producer its id and epoch; an open transaction is aborted first, or kept."""
        transaction = self._transactions.get(request.transactional_id or "")
        try:
            timeout_ms = check_init(request, self._settings)
            if request.keep_prepared_txn:
                self._check_second_protocol()
            following = init(transaction, request, timeout_ms, new_producer_id, now_ms)
        except RequestFailed as refusal:
            return _only(ticket, answers.not_initialized(refusal.code, caller.version))
        if following.state is State.PREPARE_ABORT:
            # The caller asks again, and by then the transaction before is out of the way.
            wait = answers.not_initialized(ErrorCode.CONCURRENT_TRANSACTIONS, caller.version)
            return self._ending(following, now_ms, Reply(ticket, wait))
        reply = Reply(ticket, answers.initialized(following))
        return TransactionDecision((self._record(following),), (reply,))

    def add_partitions(
        self, addition: Addition, ticket: Ticket, now_ms: int
    ) -> TransactionDecision:
        """Make partitions part of the producer's transaction, which begins with the first."""
        records, code = self._added(addition, now_ms)
        codes = dict.fromkeys(addition.partitions, code)
        response = answers.partitions_added(addition.transactional_id, codes, addition.version)
        return TransactionDecision(records, (Reply(ticket, response),))

    def add_offsets(
        self,
        request: AddOffsetsToTxnRequest,
        caller: Caller,
        ticket: Ticket,
        now_ms: int,
        offsets_partition: TopicPartition,
    ) -> TransactionDecision:
        """Make a group's partition of __consumer_offsets part of the producer's transaction."""
        addition = Addition(
            request.transactional_id,
            ProducerId(request.producer_id),
            ProducerEpoch(request.producer_epoch),
            (offsets_partition,),
            _FIRST_PROTOCOL,
        )
        records, code = self._added(addition, now_ms)
        response = answers.offsets_added(code, caller.version)
        return TransactionDecision(records, (Reply(ticket, response),))

    def verify_partitions(self, addition: Addition, ticket: Ticket) -> TransactionDecision:
        """Say for each partition whether it is part of the producer's open transaction."""
        transaction = self._transactions.get(addition.transactional_id)
        try:
            codes = adding.verify(transaction, addition)
        except RequestFailed as refusal:
            codes = dict.fromkeys(addition.partitions, refusal.code)
        response = answers.partitions_added(addition.transactional_id, codes, addition.version)
        return _only(ticket, response)

    def end_txn(
        self,
        request: EndTxnRequest,
        caller: Caller,
        ticket: Ticket,
        now_ms: int,
        spare_producer_id: ProducerId | None,
    ) -> TransactionDecision:
        """Decide the outcome of a transaction; its markers follow when that is committed."""
        transaction = self._transactions.get(request.transactional_id)
        try:
            if caller.version >= ENDING_BUMPS_FROM:
                self._check_second_protocol()
            following = end(transaction, request, caller.version, spare_producer_id, now_ms)
        except RequestFailed as refusal:
            return _only(ticket, answers.not_ended(refusal.code, caller.version))
        if following is None:
            assert transaction is not None
            return _only(ticket, answers.ended(transaction))
        return self._ending(following, now_ms, Reply(ticket, answers.ended(following)))

    def describe(self, transactional_id: str) -> TransactionState:
        """The state of one transactional id."""
        return listing.describe(transactional_id, self._transactions.get(transactional_id))

    def list_transactions(
        self, request: ListTransactionsRequest, now_ms: int
    ) -> ListTransactionsResponse:
        """The transactional ids of this shard that pass the request's filters."""
        return listing.list_matching(self._transactions.values(), request, now_ms)

    # --- markers and time ------------------------------------------------------------------------

    def markers_written(
        self, markers: WriteMarkers, partitions: Iterable[TopicPartition], now_ms: int
    ) -> TransactionDecision:
        """These partitions have their marker, or will never need it because they are gone."""
        if not self._markers.note(markers, partitions):
            return NOTHING
        return self._completion(markers.transactional_id, now_ms)

    def timer_fired(self, key: TimerKey, now_ms: int) -> TransactionDecision:
        """A completion that could not be written is tried again."""
        name, transactional_id = key
        assert name == _COMPLETION_TIMER, f"no such timer: {key}"
        if not self._markers.is_all_written(transactional_id):
            return NOTHING
        return self._completion(transactional_id, now_ms)

    def abort_timed_out(self, now_ms: int) -> TransactionDecision:
        """Abort transactions that have had their time, at most ENDED_PER_CALL_MAX of them."""
        late = [
            transaction
            for each in self._ongoing
            if (transaction := self._transactions[each]).is_timed_out(
                now_ms, self._taken_over_ms.get(each, transaction.started_ms)
            )
        ]
        late.sort(key=lambda each: (each.started_ms, each.transactional_id))
        endings = [
            self._ending(time_out(each, now_ms), now_ms) for each in late[:ENDED_PER_CALL_MAX]
        ]
        return TransactionDecision(
            tuple(record for each in endings for record in each.records),
            markers=tuple(markers for each in endings for markers in each.markers),
        )

    def expire_transactional_ids(self, now_ms: int) -> TransactionDecision:
        """Forget ids that nobody used for long, at most ENDED_PER_CALL_MAX of them."""
        expiration_ms = self._settings.transactional_id_expiration_ms
        expired = [
            each.transactional_id
            for each in self._transactions.values()
            if each.is_expired(now_ms, expiration_ms)
        ]
        return TransactionDecision(
            tuple(tombstone_of(each) for each in expired[:ENDED_PER_CALL_MAX])
        )

    # --- parts of decisions ----------------------------------------------------------------------

    def _added(self, addition: Addition, now_ms: int) -> tuple[tuple[NewRecord, ...], ErrorCode]:
        transaction = self._transactions.get(addition.transactional_id)
        try:
            following = adding.add(transaction, addition, now_ms)
        except RequestFailed as refusal:
            return (), refusal.code
        return () if following is None else (self._record(following),), ErrorCode.NONE

    def _record(self, transaction: Transaction) -> NewRecord:
        return record_of(transaction, self._version_max)

    def _check_second_protocol(self) -> None:
        """What only the second version of the protocol has cannot be written in old records."""
        if self._version_max < VALUE_VERSION_MAX:
            raise RequestFailed(ErrorCode.UNSUPPORTED_VERSION)

    def _is_prepared(self, transactional_id: str) -> bool:
        transaction = self._transactions.get(transactional_id)
        return transaction is not None and transaction.state.is_prepared

    def _ending(self, prepared: Transaction, now_ms: int, *replies: Reply) -> TransactionDecision:
        if not prepared.partitions:
            # Nobody has to hear of it: both steps are written at once.
            steps = (self._record(prepared), self._record(prepared.completed(now_ms)))
            return TransactionDecision(steps, replies)
        markers = self._markers.begin(prepared)
        return TransactionDecision((self._record(prepared),), replies, markers=(markers,))

    def _completion(self, transactional_id: str, now_ms: int) -> TransactionDecision:
        transaction = self._transactions[transactional_id]
        return TransactionDecision((self._record(transaction.completed(now_ms)),))


def _only(ticket: Ticket, response: Message) -> TransactionDecision:
    return TransactionDecision(replies=(Reply(ticket, response),))
