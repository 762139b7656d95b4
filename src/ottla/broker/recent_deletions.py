"""The topics that were deleted and not asked for since.

A question about an unknown topic creates it. The users of a topic that was just deleted must hear
of that once, before their next question brings an empty topic of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

REMEMBERED_MAX: Final = 10_000


class RecentDeletions:
    """Remembers names, the latest longest."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, names: Iterable[str]) -> None:
        """These topics are gone."""
        for name in names:
            self._names.pop(name, None)
            self._names[name] = None
        while len(self._names) > REMEMBERED_MAX:
            del self._names[next(iter(self._names))]

    def forget(self, name: str) -> bool:
        """Whether a topic of this name was deleted since this was last asked."""
        if name not in self._names:
            return False
        del self._names[name]
        return True
