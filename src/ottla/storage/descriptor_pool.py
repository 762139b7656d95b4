"""A bound on open descriptors: thousands of partitions share a few hundred.

A `PooledFile` is a path that is opened when used. When too many are open the pool drops its own
reference to those not used lately; the descriptor itself is closed when the last holder (say, a
region still being sent) lets go of the `File`, so nobody's file is closed under their hands.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ottla.storage.disk import Disk, File

OPEN_FILES_MAX: Final = 1024
"""Descriptors kept open for data files, unless the caller says otherwise."""


class DescriptorPool:
    """Opens files on demand and forgets the least used ones (second-chance order)."""

    def __init__(self, disk: Disk, *, open_files_max: int = OPEN_FILES_MAX) -> None:
        self.disk = disk
        self._open_files_max = open_files_max
        self._opened: deque[PooledFile] = deque()

    def file(self, path: str) -> PooledFile:
        return PooledFile(self, path)

    @property
    def open_count(self) -> int:
        return sum(1 for pooled in self._opened if pooled.is_open)

    def _admit(self, pooled: PooledFile) -> None:
        opened = self._opened
        opened.append(pooled)
        while len(opened) > self._open_files_max:
            oldest = opened.popleft()
            if oldest.is_open and oldest.was_used and oldest is not pooled:
                oldest.was_used = False
                opened.append(oldest)
            else:
                oldest.release()


class PooledFile:
    """One path, open or not."""

    __slots__ = ("_file", "_pool", "path", "was_used")

    def __init__(self, pool: DescriptorPool, path: str) -> None:
        self.path = path
        self.was_used = False
        self._pool = pool
        self._file: File | None = None

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def open(self, *, create: bool = False) -> File:
        """The open file. Whoever keeps the result keeps the descriptor."""
        file = self._file
        if file is None:
            file = self._file = self._pool.disk.open(self.path, create=create)
            self._pool._admit(self)
        self.was_used = True
        return file

    def release(self) -> None:
        """Let go of the descriptor; the next `open` gets a new one."""
        self._file = None
