"""What can go wrong for a client, beyond what a broker answers and what the connection does.

OttlaError
├── NoBrokerReachable          none of the addresses answers
├── BrokerTooOld               no common version of an API
└── RequestFailed
    ├── TopicNotFound          asked for by name or partition, and not there
    ├── GroupNotFound          asked for by name, and not there
    ├── GroupHasMembers        its members would undo what is asked
    ├── TransactionNotFound    a transactional id nobody used, or forgot
    └── NoOpenTransaction      nothing to end at that place
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.clients.address import Address
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import Offset, TopicPartition
from ottla.net.client_connection import ConnectionFailed, NotABroker


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
