"""The few things asked of a disk, and the local file system that does them.

Everything else in this package reaches files only through `Disk` and `File`, so that a
simulated disk can tear writes, run full, or forget what was never synced.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final, Protocol

import msgspec

from ottla.model.file_region import FileRegion

Bytes = bytes | bytearray | memoryview


BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class Entry(msgspec.Struct, frozen=True):
    """One name in a directory."""

    name: str
    size_bytes: int
    is_directory: bool
    modified_ms: int = 0


class File(Protocol):
    """An open file. It stays open for as long as somebody holds the object."""

    def fileno(self) -> int: ...

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only where the file ends."""
        ...

    def write_at(self, position: int, data: Bytes) -> None:
        """Write all of `data` or raise OSError, in which case any part of it may be there."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Return only when every byte written before is safe from a power cut."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """Proof that this process alone owns something."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system, as far as a log needs one."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, make an empty file where there is none."""
        ...

    def entries(self, path: str) -> list[Entry]: ...

    def exists(self, path: str) -> bool: ...

    def rename(self, source: str, target: str) -> None:
        """Move, replacing what stands at `target`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; one that is there already is fine."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory safe from a power cut."""
        ...

    def boot(self) -> str:
        """Names the run of the machine that keeps unsynced bytes; empty where that is not known.

        Another name than before says that what was not synced then may be gone.
        """
        ...

    def lock(self, path: str) -> Lock | None:
        """Take the lock file at `path`, or None where another process holds it."""
        ...


class LocalFile:
    """A descriptor with its own lifetime: closed when the last holder lets go."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def read_at(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        while len(data) < size:
            more = os.pread(self._descriptor, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def write_at(self, position: int, data: Bytes) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written != len(data):
            self._write_rest(position, memoryview(data), written)

    def _write_rest(self, position: int, data: memoryview, written: int) -> None:
        # A short write is how a disk that has just run full begins to say so.
        while written < len(data):
            count = os.pwrite(self._descriptor, data[written:], position + written)
            if count == 0:
                raise OSError(errno.EIO, "the disk accepts no bytes")
            written += count

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class LocalLock:
    """An advisory lock; the kernel drops it when the process dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class LocalDisk:
    """The machine's own file system."""

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(os.open(path, flags, 0o644))

    def entries(self, path: str) -> list[Entry]:
        with os.scandir(path) as entries:
            return [_entry(entry) for entry in entries]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def boot(self) -> str:
        try:
            with open(BOOT_ID, encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    def lock(self, path: str) -> LocalLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            raise
        return LocalLock(descriptor)


def _entry(entry: os.DirEntry[str]) -> Entry:
    if entry.is_dir(follow_symlinks=False):
        return Entry(entry.name, 0, True)
    status = entry.stat()
    return Entry(entry.name, status.st_size, False, status.st_mtime_ns // 1_000_000)


def read_file(disk: Disk, path: str) -> bytes | None:
    """A small file's whole content, or None where there is no such file."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def replace_file(disk: Disk, path: str, data: Bytes, *, sync: bool) -> None:
    """Put `data` at `path` so that a reader sees the old content or the new, never a mixture.

    With `sync` the new content has reached the disk on return.
    """
    temporary = path + ".tmp"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        if sync:
            file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    if sync:
        disk.sync_directory(os.path.dirname(path))


def read_region(region: FileRegion) -> bytes:
    """The bytes a region names, for callers that cannot send them straight from the file."""
    return region.read()
