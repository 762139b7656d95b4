"""Errors as people read them: a sentence, the fix, an exit code."""

from __future__ import annotations

import sys
from typing import Final

from ottla import __version__
from ottla.cli.connection_options import DEFAULT_BOOTSTRAP
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import say_error
from ottla.clients.failures import (
    BrokerNotThere,
    BrokerTooOld,
    DeliveryTimedOut,
    GroupHasMembers,
    GroupNotFound,
    NoBrokerReachable,
    NoOpenTransaction,
    TopicNotFound,
    TransactionNotFound,
)
from ottla.errors import ConfigError, ErrorCode, OttlaError
from ottla.net.client_connection import ConnectionFailed, NotABroker, ResponseTimedOut

_FIXES: Final = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "choose another name, or add --if-not-exists",
    ErrorCode.INVALID_REPLICATION_FACTOR: "ask for no more --replicas than there are brokers "
    "(`ottla cluster describe` lists them)",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions must be positive, and can only grow",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller records, or raise max.message.bytes of the topic "
    "(`ottla configs set topic NAME max.message.bytes=...`)",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`ottla topics describe NAME` shows the offsets there are",
    ErrorCode.UNSUPPORTED_VERSION: "upgrade the broker",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "connect as a user who may do this",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "connect as a user who may use this topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "connect as a user who may use this group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "connect as a user who may use this id",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the consumers that read the topic first",
    ErrorCode.NOT_ENOUGH_REPLICAS: "wait for more replicas to come back, or use --acks 1",
    ErrorCode.KAFKA_STORAGE_ERROR: "look at the broker's log and at the free space on its disk",
}


def complain(error: BaseException) -> int:
    """Prints what went wrong on standard error; returns the exit code."""
    if isinstance(error, OttlaError):
        say_error(_sentence(error), fix_for(error))
        return exit_code_of(error)
    if isinstance(error, OSError):
        what = f"{error.filename}: " if error.filename else ""
        say_error(f"{what}{error.strerror or error}")
        return ExitCode.FAILED
    if "--debug" in sys.argv:
        return ExitCode.BUG
    say_error(
        f"this is a bug in Ottla {__version__}: {type(error).__name__}: {error}",
        "run it again as `ottla --debug ...` and report what it prints",
    )
    return ExitCode.BUG


def exit_code_of(error: OttlaError) -> ExitCode:
    """Which kind of failure it is."""
    if isinstance(error, DeliveryTimedOut) and error.last_error is not None:
        return exit_code_of(error.last_error)
    if isinstance(error, ConnectionFailed | NoBrokerReachable):
        return ExitCode.UNREACHABLE
    return ExitCode.USAGE if isinstance(error, ConfigError) else ExitCode.FAILED


def fix_for(error: OttlaError) -> str | None:
    """What to do about it, if that can be said."""
    match error:
        case NoBrokerReachable():
            return _unreachable_fix([cause for _, cause in error.tried])
        case BrokerNotThere():
            return "`ottla brokers list` shows those that are"
        case ConnectionFailed():
            return _unreachable_fix([error])
        case DeliveryTimedOut():
            return None if error.last_error is None else fix_for(error.last_error)
        case TopicNotFound(partition=None):
            return f"see `ottla topics list`, or create it with `ottla topics create {error.topic}`"
        case TopicNotFound():
            return f"see `ottla topics describe {error.topic}`"
        case GroupNotFound():
            return "see `ottla groups list`"
        case GroupHasMembers():
            return (
                f"stop its consumers first (`ottla groups describe {error.group}` lists them); "
                "one that was killed leaves by itself after its session time-out"
            )
        case TransactionNotFound():
            return "see `ottla transactions list`"
        case NoOpenTransaction():
            topic = error.partition.topic
            return f"`ottla transactions producers {topic}` shows where transactions begin"
        case BrokerTooOld():
            return f"upgrade the broker, or look closer with `ottla doctor {error.peer}`"
        case ConfigError():
            return None  # its own sentence says it
    return _FIXES.get(error.code)


def _unreachable_fix(causes: list[OttlaError]) -> str:
    peers = [cause.peer for cause in causes if isinstance(cause, ConnectionFailed)]
    doctor = f"`ottla doctor {peers[0] if peers else 'HOST:PORT'}`"
    if any(isinstance(cause, NotABroker) for cause in causes):
        return f"check the port; {doctor} finds out what answers there"
    if any(isinstance(cause, ResponseTimedOut) for cause in causes):
        return f"try again with a longer --timeout, or ask {doctor}"
    if peers == [DEFAULT_BOOTSTRAP]:
        return "start a broker with `ottla serve`, or name yours with --bootstrap HOST:PORT"
    return f"check the address and that the broker runs; {doctor} looks closer"


def _sentence(error: OttlaError) -> str:
    text = str(error)
    return text if text.endswith((".", "!", "?")) or not text else f"{text}."
