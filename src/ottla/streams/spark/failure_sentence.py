"""What made a query fail, in one sentence: taken out of what Spark says about it."""

from __future__ import annotations

import re
from typing import Final

from ottla.errors import ErrorCode, OttlaError

_RAISED: Final = re.compile(r"^(?:[a-z_]+\.)*([A-Z]\w*(?:\.[A-Z]\w*)*): (.+)$", re.MULTILINE)
_PASSING: Final = (
    "Python worker failed to connect back",
    "CANNOT_OPEN_SOCKET",
    "Python worker exited unexpectedly",
    "failures.NoBrokerReachable",
)
"""What a machine with too much to do lets happen when Spark starts a process, or to one; and that
brokers were away for longer than clients wait."""
_TEXT_MAX: Final = 600


class QueryFailed(OttlaError):
    """A query of an application ended in an error."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, query: str, reason: str) -> None:
        self.query = query
        self.reason = reason
        super().__init__(f"{query} failed: {reason}")


def sentence(text: str) -> str:
    """The last error of a Python traceback, or else the first line."""
    python = text.rpartition("Traceback (most recent call last)")[2] if "Traceback" in text else ""
    raised = _RAISED.findall(python)
    if raised:
        kind, reason = raised[0]
        ours = "ottla." in python.partition(f"{kind}: ")[0].rpartition("\n")[2]
        return (reason if ours else f"{kind}: {reason}")[:_TEXT_MAX]
    first = next((line for line in text.splitlines() if line.strip()), "no reason was given")
    return first[:_TEXT_MAX]


def is_passing(text: str) -> bool:
    """Whether the same query may well run when it is started again."""
    return any(part in text for part in _PASSING)
