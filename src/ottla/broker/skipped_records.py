"""What a coordinator could not read in its log: how much, where it begins and why.

One bad record must not keep every group or transaction of a partition from being served, and one
line must be enough to tell of any number of them.
"""

from __future__ import annotations

from ottla.errors import OttlaError


class SkippedRecords:
    """Counts the records of one load that were skipped."""

    __slots__ = ("_count", "_first_offset", "_reason")

    def __init__(self) -> None:
        self._count = 0
        self._first_offset = -1
        self._reason = ""

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, offset: int, error: Exception, count: int = 1) -> None:
        """Notes `count` records from `offset` on."""
        if not self._count:
            self._first_offset = offset
            kind = "" if isinstance(error, OttlaError) else f"{type(error).__name__}: "
            self._reason = f"{kind}{error}"
        self._count += count

    def __str__(self) -> str:
        return (
            f"{self._count} of its records cannot be read and are skipped, the first at offset"
            f" {self._first_offset}: {self._reason}"
        )
