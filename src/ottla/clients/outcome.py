"""What became of one topic in a call about many: some may fail while others succeed."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.clients.failures import TopicNotFound, refusal
from ottla.errors import ErrorCode, RequestFailed


@dataclass(frozen=True, slots=True)
class Outcome:
    """One topic of a call by its name, and why it failed if it did."""

    name: str
    error: RequestFailed | None = None


def outcome(name: str, code: int, message: str | None = None) -> Outcome:
    """The outcome a response's error code stands for."""
    if not code:
        return Outcome(name)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return Outcome(name, TopicNotFound(name))
    return Outcome(name, refusal(code, f"topic {name!r}", message))
