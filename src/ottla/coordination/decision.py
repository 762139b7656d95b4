"""What a coordinator wants done, as values: records to write, answers to send, timers to set.

A coordinator decides and changes nothing that is kept. The runtime appends `records` as one batch,
replays each of them at once, sets the timers, and sends `replies` when the batch is committed.
Does not know what the records say, where they are written or how time passes.
"""

from __future__ import annotations

from typing import Final, NewType

import msgspec

from ottla.protocol.message import Message

Ticket = NewType("Ticket", int)
"""Names a request that waits for an answer; the runtime chooses it."""

TimerKey = tuple[str, ...]
"""Names a timer within one coordinator."""


class Caller(msgspec.Struct, frozen=True):
    """Who sent a request, and in which version of its API."""

    client_id: str
    client_host: str
    version: int


class Reply(msgspec.Struct, frozen=True):
    """The answer to one waiting request."""

    ticket: Ticket
    response: Message


class StartTimer(msgspec.Struct, frozen=True):
    """Let the timer fire after `delay_ms`, whatever it was set to before."""

    key: TimerKey
    delay_ms: int


class StopTimer(msgspec.Struct, frozen=True):
    """The timer need not fire any more; it may not have been set."""

    key: TimerKey


TimerChange = StartTimer | StopTimer

Said = tuple[Message, Message | None]
"""The key and the value of a record; no value is a tombstone."""


class NewRecord(msgspec.Struct, frozen=True):
    """One encoded record of a coordinator's log; without a value it is a tombstone."""

    key: bytes
    value: bytes | None
    said: Said | None = None
    """What key and value say, where whoever made the record knows it: then nobody reads it back."""


class Decision(msgspec.Struct, frozen=True):
    """Everything that follows from one event."""

    records: tuple[NewRecord, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: tuple[TimerChange, ...] = ()


NOTHING: Final = Decision()
"""Nothing follows."""
