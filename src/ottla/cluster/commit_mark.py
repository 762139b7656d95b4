"""The number of the last commit, in a small file beside the metadata's own.

SQLite takes a write-ahead log that was cut, damaged or removed for one that ends there, and opens
with older metadata as if nothing was missing. The mark tells. It is written after each commit and
not synced: a power cut may leave an earlier number in it, never a later one.
Blocks while it works; knows nothing but the number.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_DIGITS: Final = 20


class CommitMark:
    """The mark of one database."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def read(self) -> int:
        """The number noted last; 0 if there is none, or none that can be read."""
        text = os.pread(self._descriptor, _DIGITS, 0)
        return int(text) if len(text) == _DIGITS and text.isdigit() else 0

    def write(self, number: int) -> None:
        # Always as many bytes at the same place: a crash cannot leave a part of a number.
        os.pwrite(self._descriptor, f"{number:0{_DIGITS}d}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)
