"""What a coordinator wants done, as values: records to write, answers to send, timers to set.

A coordinator decides and changes nothing that is kept. The runtime appends `records` as one batch,
replays each of them at once, sets the timers, and sends `replies` when the batch is committed.
Does not know what the records say, where they are written or how time passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NewType

from ottla.protocol.message import Message

Ticket = NewType("Ticket", int)
"""Names a request that waits for an answer; the runtime chooses it."""

TimerKey = tuple[str, ...]
"""Names a timer within one coordinator."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and in which version of its API."""

    client_id: str
    client_host: str
    version: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one waiting request."""

    ticket: Ticket
    response: Message


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Let the timer fire after `delay_ms`, whatever it was set to before."""

    key: TimerKey
    delay_ms: int


@dataclass(frozen=True, slots=True)
class StopTimer:
    """The timer need not fire any more; it may not have been set."""

    key: TimerKey


TimerChange = StartTimer | StopTimer


@dataclass(frozen=True, slots=True)
class NewRecord:
    """One encoded record of a coordinator's log; without a value it is a tombstone."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything that follows from one event."""

    records: tuple[NewRecord, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: tuple[TimerChange, ...] = ()


NOTHING: Final = Decision()
"""Nothing follows."""
