"""Lets brokers write into memory that the machine has used before. Linux only; elsewhere nothing.

On a virtual machine that gives free memory back to its host, the first touch of a page costs a trip
to the host: 1.6 s of kernel time for each GB written, booked on the broker that happens to write.
Where memory is full, as on a machine that has run for a day, new pages are old ones used again, and
the trip is saved. So most of the memory is held, and what is left is filled with the cached pages
of an empty file, which the kernel drops as soon as somebody needs them.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEFT_BYTES = 6_000_000_000
"""For brokers, clients and the page cache; machines with less are not made to do with even less."""
FREE_BYTES_WANTED = 250_000_000
CHUNK_BYTES = 8 << 20


class RecycledMemory:
    """Held memory, and an empty file as large as what is left, read into the page cache."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "nothing-but-holes"
        self._held: mmap.mmap | None = None
        with open(self._path, "wb") as file:
            file.truncate(LEFT_BYTES)

    def fill(self) -> None:
        """Take what is not left to others, and read on until little memory is free."""
        if self._held is None:
            print("taking memory, so that brokers write into what was used before", flush=True)
            self._held = _hold(_meminfo_bytes("MemAvailable") - LEFT_BYTES)
        buffer = memoryview(bytearray(CHUNK_BYTES))
        with open(self._path, "rb", buffering=0) as file:
            while _meminfo_bytes("MemFree") > FREE_BYTES_WANTED and file.readinto(buffer):
                pass

    def release(self) -> None:
        """Let go of what is held; the file's pages go with the file."""
        if self._held is not None:
            self._held.close()
            self._held = None


@contextmanager
def recycled_memory(folder: Path | None) -> Iterator[RecycledMemory]:
    """With the file in a folder, or in a temporary one."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        memory = RecycledMemory(Path(own))
        try:
            yield memory
        finally:
            memory.release()


def _hold(size_bytes: int) -> mmap.mmap | None:
    """So much memory, in use; not copied to child processes."""
    if size_bytes <= 0 or not hasattr(mmap, "MAP_POPULATE"):
        return None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    held = mmap.mmap(-1, size_bytes, flags=flags)
    held.madvise(mmap.MADV_DONTFORK)
    return held


def _meminfo_bytes(field: str) -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)
