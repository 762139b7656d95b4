"""A run of bytes in a file, named instead of read, so that it can be sent without a copy."""

from __future__ import annotations

import os
from typing import Protocol

from ottla.model.ids import Position


class OpenFile(Protocol):
    """Anything the kernel knows by a descriptor. Whoever holds the object keeps it open."""

    def fileno(self) -> int: ...


class FileRegion:
    """`size` bytes of `file` from `position` on."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: OpenFile, position: Position, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """The bytes themselves, for those who cannot do without."""
        read_at = getattr(self.file, "read_at", None)
        if read_at is not None:  # a file that may be no descriptor, as those of a simulated disk
            data: bytes = read_at(self.position, self.size)
            return data
        return os.pread(self.file.fileno(), self.size, self.position)
