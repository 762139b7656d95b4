"""A decision in the making: everything that one event leads to is collected here, then frozen."""

from __future__ import annotations

import msgspec

from ottla.coordination.decision import (
    NOTHING,
    Caller,
    Decision,
    NewRecord,
    Reply,
    StartTimer,
    StopTimer,
    Ticket,
    TimerChange,
    TimerKey,
)
from ottla.protocol.message import Message


class Outcome:
    """Collects the records, answers and timers of one event."""

    __slots__ = ("now_ms", "records", "replies", "timers")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.records: list[NewRecord] = []
        self.replies: list[Reply] = []
        self.timers: list[TimerChange] = []

    def write(self, record: NewRecord) -> None:
        self.records.append(record)

    def answer(self, ticket: Ticket, response: Message) -> None:
        self.replies.append(Reply(ticket, response))

    def start_timer(self, key: TimerKey, delay_ms: int) -> None:
        self.timers.append(StartTimer(key, delay_ms))

    def stop_timer(self, key: TimerKey) -> None:
        self.timers.append(StopTimer(key))

    def decision(self) -> Decision:
        if not (self.records or self.replies or self.timers):
            return NOTHING
        return Decision(tuple(self.records), tuple(self.replies), tuple(self.timers))


class Call(msgspec.Struct, frozen=True):
    """One request that is being decided: who sent it, under which ticket it waits, the outcome."""

    caller: Caller
    ticket: Ticket
    outcome: Outcome

    @property
    def version(self) -> int:
        return self.caller.version

    def answer(self, response: Message) -> None:
        self.outcome.answer(self.ticket, response)


class Parked(msgspec.Struct, frozen=True):
    """A request that waits for others, with the version its answer must have."""

    ticket: Ticket
    version: int
