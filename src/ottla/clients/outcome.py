"""What became of one thing in a call about many: some may fail while others succeed."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.clients.failures import refusal
from ottla.errors import RequestFailed


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing of a call by its name, and why it failed if it did."""

    name: str
    error: RequestFailed | None = None


def outcome(name: str, code: int, message: str | None = None) -> Outcome:
    """The outcome a response's error code stands for."""
    return Outcome(name, refusal(code, repr(name), message) if code else None)
