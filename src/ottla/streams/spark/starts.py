"""A first micro-batch for every start of a query, whether there are records or not.

Timers by the wall clock need it: Spark looks at them in micro-batches only, and makes one without
records only behind another one of the same start. So the offsets of such a query also count how
often it was started, and with each start there is something new to read up to.
"""

from __future__ import annotations

from typing import Any, Final

Offsets = dict[str, Any]
NO_TOPIC: Final = ""
"""No topic has this name: below it stands the count among the offsets."""
_PLACE: Final = "0"


def without_count(offsets: Offsets) -> Offsets:
    """The offsets of topics alone."""
    return {topic: below for topic, below in offsets.items() if topic != NO_TOPIC}


class Starts:
    """Counts one more than the offsets say this start begins with."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count: int | None = None

    def counted(self, offsets: Offsets, start: Offsets) -> Offsets:
        """The offsets with the count; `start` is where the query is."""
        if self._count is None:
            self._count = int(start.get(NO_TOPIC, {}).get(_PLACE, 0)) + 1
        return {**offsets, NO_TOPIC: {_PLACE: self._count}}
