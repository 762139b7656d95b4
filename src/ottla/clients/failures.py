"""What can go wrong for a client, beyond what a broker answers and what the connection does.

OttlaError
├── ConnectionFailed
│   └── BrokerNotThere         the cluster has no broker of that number now
├── NoBrokerReachable          none of the addresses answers
├── BrokerTooOld               no common version of an API
├── SendsFailed                all failed sends whose results nobody took
└── RequestFailed
    ├── TopicNotFound          asked for by name or partition, and not there
    ├── GroupNotFound          asked for by name, and not there
    ├── GroupHasMembers        its members would undo what is asked
    ├── TransactionNotFound    a transactional id nobody used, or forgot
    └── NoOpenTransaction      nothing to end at that place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from ottla.clients.address import Address
from ottla.errors import (
    ConfigError,
    ErrorCode,
    OffsetOutOfRange,
    OttlaError,
    ProtocolError,
    RequestFailed,
)
from ottla.model.ids import BrokerId, Offset, TopicPartition
from ottla.net.client_connection import ConnectionFailed, NotABroker

if TYPE_CHECKING:
    from ottla.clients.arrow.table_sent import TableSent


REASONS_NAMED_MAX: Final = 3
"""How many reasons one sentence names."""


class NoBrokerReachable(OttlaError):
    """Every address was tried, and none answers as a broker."""

    code = ErrorCode.BROKER_NOT_AVAILABLE

    def __init__(
        self, tried: Sequence[tuple[Address, OttlaError]], *, was_reachable: bool = False
    ) -> None:
        self.tried = tuple(tried)
        self.was_reachable = was_reachable
        """Some broker answered before: it may be restarting, so that trying again can help."""
        reasons = "; ".join(dict.fromkeys(str(error) for _, error in tried))
        super().__init__(reasons or "no broker is known")


class BrokerNotThere(ConnectionFailed):
    """The cluster's metadata has no such broker now; it may come back."""

    def __init__(self, broker: BrokerId) -> None:
        self.broker = broker
        super().__init__(f"broker {broker}", f"broker {broker} is not in the cluster")


class BrokerTooOld(OttlaError):
    """The broker and this client have no version of the API in common."""

    code = ErrorCode.UNSUPPORTED_VERSION

    def __init__(self, peer: str, api_name: str, reason: str) -> None:
        self.peer = peer
        self.api_name = api_name
        super().__init__(f"{peer} {reason}")


class TopicNotFound(RequestFailed):
    """There is no such topic, or it has no such partition."""

    def __init__(self, topic: str, partition: int | None = None) -> None:
        self.topic = topic
        self.partition = partition
        what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {what}")


class GroupNotFound(RequestFailed):
    """There is no such group."""

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")


class GroupHasMembers(RequestFailed):
    """The group is being consumed; `members` is 0 where nobody says how many they are."""

    def __init__(self, group: str, members: int = 0) -> None:
        self.group = group
        self.members = members
        count = "an active member" if members == 1 else f"{members or ''} active members".strip()
        super().__init__(ErrorCode.NON_EMPTY_GROUP, f"group {group!r} has {count}")


class TransactionNotFound(RequestFailed):
    """The coordinator does not know the transactional id."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        super().__init__(
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            f"there is no transactional id {transactional_id!r}",
        )


class NoOpenTransaction(RequestFailed):
    """No transaction that is open now begins at this offset of the partition."""

    def __init__(self, partition: TopicPartition, start_offset: Offset) -> None:
        self.partition = partition
        self.start_offset = start_offset
        super().__init__(
            ErrorCode.INVALID_TXN_STATE,
            f"no open transaction begins at offset {start_offset} of {partition}",
        )


class WrongUse(OttlaError):
    """The calls came in an order that makes no sense; the program must change."""

    code = ErrorCode.INVALID_REQUEST


class ClientClosed(WrongUse):
    """The client was closed, or belongs to another process."""

    def __init__(self, what: str, reason: str = "is closed") -> None:
        super().__init__(f"the {what} {reason}")


class SerializationFailed(OttlaError):
    """A key or a value could not be turned into bytes, or back."""

    code = ErrorCode.INVALID_RECORD

    def __init__(self, what: str, cause: Exception) -> None:
        self.cause = cause
        super().__init__(f"{what}: {cause}")


class BufferFull(OttlaError):
    """Records are made faster than they can be sent, and no more of them may wait."""

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, buffer_bytes: int, waited_ms: int) -> None:
        self.buffer_bytes = buffer_bytes
        self.waited_ms = waited_ms
        super().__init__(
            f"no room for more records after {waited_ms} ms: those that wait are not sent fast "
            f"enough, if at all (buffer memory: {buffer_bytes} bytes)"
        )


class DeliveryTimedOut(OttlaError):
    """The record may or may not be in the log: no broker has said so in time."""

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, partition: TopicPartition, after_ms: int, last: OttlaError | None) -> None:
        self.partition = partition
        self.last_error = last
        why = f"; the last attempt ended with: {last}" if last is not None else ""
        super().__init__(f"{partition}: not acknowledged within {after_ms} ms{why}")


class DeliveryNotKnown(OttlaError):
    """The caller stopped waiting; the record is still on its way."""

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"not known after {waited_s:g} s; the record is still on its way")


@dataclass(frozen=True, slots=True)
class FailedSend:
    """Records of one batch that were not written, and whose results nobody took."""

    partition: TopicPartition
    record_count: int
    error: OttlaError


class SendsFailed(OttlaError):
    """Records were not written, or nobody said so, and nobody took their results.

    `failures` says which, batch by batch; of `more_count` others only the number is known.
    """

    def __init__(self, failures: Sequence[FailedSend], more_count: int = 0) -> None:
        self.failures = tuple(failures)
        self.more_count = more_count
        """Records beyond those in `failures`: too many to keep."""
        self.record_count = sum(each.record_count for each in failures) + more_count
        self.code = failures[0].error.code
        counts: dict[str, int] = {}
        for each in failures:
            reason = f"{each.partition}: {each.error}"
            if str(each.error).startswith(f"partition {each.partition}"):
                reason = str(each.error)
            counts[reason] = counts.get(reason, 0) + each.record_count
        named = [f"{count} of {reason}" for reason, count in counts.items()]
        left = self.record_count - sum(list(counts.values())[:REASONS_NAMED_MAX])
        if left:
            named[REASONS_NAMED_MAX:] = [f"and {left} more"]
        noun = "record was" if self.record_count == 1 else "records were"
        super().__init__(
            f"{self.record_count} {noun} not acknowledged, and nobody took the results: "
            + "; ".join(named)
        )


class Fenced(OttlaError):
    """Another client with the same transactional id or group instance id has taken over."""

    code = ErrorCode.PRODUCER_FENCED

    def __init__(self, name: str, code: ErrorCode = ErrorCode.PRODUCER_FENCED) -> None:
        self.code = code
        super().__init__(f"another client has taken over the name {name!r}")


class TransactionMustAbort(OttlaError):
    """Something of the transaction was not written: abort it, then begin the next."""

    code = ErrorCode.TRANSACTION_ABORTABLE

    def __init__(self, cause: OttlaError) -> None:
        self.cause = cause
        super().__init__(f"the transaction cannot commit: {cause}")


class TableNotSent(OttlaError):
    """Not all of a table was written: `sent` says what was, `cause` why the rest was not."""

    def __init__(self, cause: OttlaError, sent: TableSent, failed_count: int) -> None:
        self.code = cause.code
        self.cause = cause
        self.sent = sent
        self.failed_count = failed_count
        """Records that were handed over and came to nothing; the rows behind them were not."""
        super().__init__(f"{sent.record_count} records of the table were written, then: {cause}")


class CommitRefused(OttlaError):
    """The group has rebalanced: its partitions belong to others, who read them again."""

    def __init__(self, group_id: str, code: ErrorCode) -> None:
        self.code = code
        super().__init__(f"group {group_id!r} refuses the offsets: {code.sentence}")


class NoCommittedOffset(OttlaError):
    """There is no position to begin from, and the reset policy is `none`."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = tuple(partitions)
        names = ", ".join(str(partition) for partition in partitions)
        super().__init__(f"no valid position for {names}, and auto.offset.reset is none")


class LogTruncated(OttlaError):
    """What was read is not in the log any more: another leader has a different history."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, diverged: Mapping[TopicPartition, tuple[int, int]]) -> None:
        self.diverged = dict(diverged)
        """By partition: the position, and the offset from which the histories differ."""
        texts = [f"{where} at {had} ends at {end}" for where, (had, end) in diverged.items()]
        super().__init__(f"the log was truncated: {', '.join(texts)}")


class RecordsGone(OffsetOutOfRange):
    """Records that were to be read are not in the log: deleted by now, or lost with a leader."""

    def __init__(self, partition: TopicPartition, offset: int, start: int, end: int) -> None:
        super().__init__(offset, start, end)
        self.partition = partition
        self.args = (f"{partition}: {self}",)


class Fault(Enum):
    """Who must do something about an error."""

    CALLER = "caller"
    """The program that uses the client, or its settings."""
    CLUSTER = "cluster"
    """The brokers."""
    NETWORK = "network"
    """What is between."""


def fault_of(error: BaseException) -> Fault:
    """Whose fault an error is."""
    if isinstance(error, ConnectionFailed) and not isinstance(error, NotABroker):
        return Fault.NETWORK
    if isinstance(error, NoBrokerReachable):
        return Fault.NETWORK
    if isinstance(error, ConfigError | WrongUse | SerializationFailed | NotABroker | BufferFull):
        return Fault.CALLER
    if isinstance(error, DeliveryTimedOut) and error.last_error is not None:
        return fault_of(error.last_error)
    if isinstance(error, SendsFailed):
        return fault_of(error.failures[0].error)
    if isinstance(error, TransactionMustAbort | TableNotSent):
        return fault_of(error.cause)
    if isinstance(error, ProtocolError) or not isinstance(error, OttlaError):
        return Fault.CLUSTER if isinstance(error, ProtocolError) else Fault.CALLER
    return Fault.CALLER if error.code in _CALLERS else Fault.CLUSTER


_CALLERS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)

_CODES: Final = {code.value: code for code in ErrorCode}


def is_worth_retrying(error: OttlaError) -> bool:
    """Whether the same call may succeed a little later."""
    if isinstance(error, NotABroker | TopicNotFound):
        return False
    if isinstance(error, NoBrokerReachable):
        return error.was_reachable
    return isinstance(error, ConnectionFailed) or error.code.retriable


def error_code(number: int) -> ErrorCode:
    """The code by its number; one that is newer than this client counts as unknown."""
    return _CODES.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


def check_answer(number: int, about: str, message: str | None = None) -> None:
    """Raises what a response's error code says went wrong with `about`; code 0 passes."""
    if number:
        raise refusal(number, about, message)


def refusal(number: int, about: str, message: str | None = None) -> RequestFailed:
    """The exception for an error code: what it is about, and why in the broker's words or ours."""
    code = error_code(number)
    reason = message or code.sentence
    return RequestFailed(code, f"{about}: {reason}" if about else reason)
