"""Which runs of files can be read from memory, without waiting for a disk.

Linux tells by `cachestat` since 6.5, which Python does not have: it is called by its number. Where
that is not to be had, single bytes are read in a way that would rather fail than wait, at strides.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from typing import Final

from ottla.model.file_region import FileRegion

PROBE_STRIDE_BYTES: Final = 128 * 1024
"""The kernel reads ahead in steps of this size, so one probe a step tells whether all is there."""
WARM_CHUNK_BYTES: Final = 1024 * 1024
PAGE_BYTES: Final[int] = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_CACHESTAT: Final = 451
"""The call's number, on every kind of processor."""
_NOT_RESIDENT: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)


def is_resident(region: FileRegion) -> bool:
    """Whether the region can be read from memory."""
    if not _NOWAIT:
        return True
    last = region.position + region.size - 1
    try:
        descriptor = region.file.fileno()
        if region.size > PROBE_STRIDE_BYTES:
            are_cached = page_cache().holds(descriptor, region.position, region.size)
            if are_cached is not None:
                # Pages on their way from the disk count as cached, and the last come last.
                return are_cached and _can_read(descriptor, last)
        for position in range(region.position, last, PROBE_STRIDE_BYTES):
            if not _can_read(descriptor, position):
                return False
        return _can_read(descriptor, last)
    except OSError:
        return True  # What has no descriptor lives in memory.


def read_resident(region: FileRegion) -> bytearray | None:
    """The region's bytes, unless some of them would have to come from a disk."""
    data = bytearray(region.size)
    try:
        count = os.preadv(region.file.fileno(), [data], region.position, _NOWAIT)
    except OSError as error:
        return None if error.errno in _NOT_RESIDENT else bytearray(region.read())
    return data if count == region.size else None


def warm(region: FileRegion) -> None:
    """Brings the region into the page cache. Blocks: run it in a thread."""
    descriptor = region.file.fileno()
    buffer = bytearray(min(WARM_CHUNK_BYTES, region.size))
    position: int = region.position
    end = position + region.size
    while position < end:
        count = os.preadv(descriptor, [memoryview(buffer)[: end - position]], position)
        if count <= 0:
            return
        position += count


def _can_read(descriptor: int, position: int) -> bool:
    """Whether the byte there is in memory; file systems without the flag live there (tmpfs)."""
    try:
        os.preadv(descriptor, [bytearray(1)], position, _NOWAIT)
    except OSError as error:
        return error.errno not in _NOT_RESIDENT
    return True


class PageCache:
    """Asks the kernel which pages of files it has. One caller at a time."""

    def __init__(self) -> None:
        import ctypes  # not before something large is sent: starting takes long enough

        self.is_known = sys.platform == "linux"
        """Whether the kernel can be asked; false from the first time it could not."""
        self._asked = (ctypes.c_uint64 * 2)()
        self._told = (ctypes.c_uint64 * 5)()
        if self.is_known:
            self._call = ctypes.CDLL(None).syscall
            self._call.restype = ctypes.c_long
            place = ctypes.c_void_p
            self._call.argtypes = (ctypes.c_long, ctypes.c_uint, place, place, ctypes.c_uint)
            self._places = ctypes.addressof(self._asked), ctypes.addressof(self._told)

    def holds(self, descriptor: int, position: int, size: int) -> bool | None:
        """Whether all pages of a run are cached; None where there is no telling."""
        if not self.is_known:
            return None
        asked = self._asked
        asked[0], asked[1] = position, size
        at, told = self._places
        if self._call(_CACHESTAT, descriptor, at, told, 0) != 0:
            self.is_known = False
            return None
        first, last = position // PAGE_BYTES, (position + size - 1) // PAGE_BYTES
        return self._told[0] > last - first


page_cache: Final = cache(PageCache)
"""The one of this process, made when it is first asked."""
