"""Lets brokers write into memory that the machine has used before. Linux only; elsewhere nothing.

On a virtual machine that gives free memory back to its host, the first touch of a page costs a trip
to the host: 1.6 s of kernel time for each GB written, booked on the broker that happens to write.
Where the page cache is full, as on a machine that has run for a day, new pages are old ones used
again, and the trip is saved. So free memory is filled with the cached pages of an empty file,
which the kernel drops as soon as somebody needs them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FREE_BYTES_WANTED = 1_500_000_000
CHUNK_BYTES = 8 << 20


class RecycledMemory:
    """An empty file as large as the memory, read into the page cache as far as there is room."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "nothing-but-holes"
        self._size_bytes = _meminfo_bytes("MemTotal")
        with open(self._path, "wb") as file:
            file.truncate(self._size_bytes)

    def fill(self) -> None:
        """Read on until little memory is free."""
        buffer = memoryview(bytearray(CHUNK_BYTES))
        with open(self._path, "rb", buffering=0) as file:
            while _meminfo_bytes("MemFree") > FREE_BYTES_WANTED and file.readinto(buffer):
                pass


@contextmanager
def recycled_memory(folder: Path | None) -> Iterator[RecycledMemory]:
    """The file in a folder, or in a temporary one; its pages are given back at the end."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        yield RecycledMemory(Path(own))


def _meminfo_bytes(field: str) -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)
