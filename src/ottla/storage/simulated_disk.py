"""A disk in memory that fails as real ones do: full, torn, forgetful, unable to sync.

What was synced survives `lose_power`; of the rest any prefix may, the last write torn, or with
zeros where the file had grown but the data had not arrived. Names are journaled in order: an
unsynced rename or creation may be lost, but only together with every later one.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

import msgspec

from ottla.storage.disk import Bytes, Entry

Choose = Callable[[int], int]
"""Gives a number in [0, n), by the test's own seed."""


class _Content(msgspec.Struct, eq=False):
    """A file's bytes, whatever its name is."""

    data: bytearray = msgspec.field(default_factory=bytearray)
    durable: bytes = b""
    writes: list[tuple[int, bytes | None]] = msgspec.field(default_factory=list)
    """Since the last sync: (position, bytes), or (size, None) for a truncation."""


class SimulatedFile:
    """An open file of a SimulatedDisk."""

    def __init__(self, disk: SimulatedDisk, content: _Content) -> None:
        self._disk = disk
        self._content = content

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a simulated file has no descriptor")

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self._content.data[position : position + size])

    def write_at(self, position: int, data: Bytes) -> None:
        content = self._content
        written = bytes(data)[: self._disk._take_space(content, position, len(data))]
        _write(content.data, position, written)
        content.writes.append((position, written))
        if len(written) < len(data):
            raise OSError(errno.ENOSPC, "no space left on the simulated disk")

    def size(self) -> int:
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        if self._disk.fail_truncate:
            raise OSError(errno.EIO, "the simulated disk cannot truncate")
        content = self._content
        self._disk._give_space(len(content.data) - size)
        _truncate(content.data, size)
        content.writes.append((size, None))

    def sync(self) -> None:
        if self._disk.fail_sync:
            raise OSError(errno.EIO, "the simulated disk cannot sync")
        self._content.durable = bytes(self._content.data)
        self._content.writes.clear()

    def close(self) -> None:
        """Nothing to let go of."""


class _SimulatedLock:
    def __init__(self, disk: SimulatedDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk._locked.discard(self._path)


class SimulatedDisk:
    """Directories and files in memory. The attributes say what goes wrong from now on."""

    def __init__(self) -> None:
        self.fail_sync = False
        self.fail_truncate = False
        self.space_bytes: int | None = None
        """How much more can be written before the disk is full; None is no limit."""
        self.before_change: Callable[[str], None] | None = None
        """Called with a description before each change of a name; may raise to stop there."""
        self._names: dict[str, _Content] = {}
        self._directories: set[str] = {""}
        self._history: list[tuple[str, dict[str, _Content], set[str]]] = []
        """The names before each unsynced change, and the directory it was in."""
        self._locked: set[str] = set()
        self.boots = 1

    # --- what a disk does ------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        content = self._names.get(path)
        if content is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._change(f"create {path}", path)
            content = self._names[path] = _Content()
        return SimulatedFile(self, content)

    def entries(self, path: str) -> list[Entry]:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        prefix = path + "/"
        files = [
            Entry(name[len(prefix) :], len(content.data), False)
            for name, content in self._names.items()
            if name.startswith(prefix) and "/" not in name[len(prefix) :]
        ]
        directories = [
            Entry(name[len(prefix) :], 0, True)
            for name in self._directories
            if name.startswith(prefix) and "/" not in name[len(prefix) :]
        ]
        return files + directories

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def rename(self, source: str, target: str) -> None:
        if source in self._directories:
            self._rename_directory(source, target)
            return
        if source not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self._change(f"rename {source} {target}", target)
        self._names[target] = self._names.pop(source)

    def _rename_directory(self, source: str, target: str) -> None:
        self._change(f"rename {source} {target}", target)
        for name in [name for name in self._names if name.startswith(source + "/")]:
            self._names[target + name[len(source) :]] = self._names.pop(name)
        self._directories.discard(source)
        self._directories.add(target)

    def remove(self, path: str) -> None:
        if path in self._names:
            self._change(f"remove {path}", path)
            self._give_space(len(self._names.pop(path).data))

    def make_directory(self, path: str) -> None:
        while path and path not in self._directories:
            self._change(f"make {path}", path)
            self._directories.add(path)
            path = path.rpartition("/")[0]

    def remove_directory(self, path: str) -> None:
        self._change(f"remove {path}", path)
        self._directories.discard(path)

    def sync_directory(self, path: str) -> None:
        if self.fail_sync:
            raise OSError(errno.EIO, "the simulated disk cannot sync")
        # A journal is committed in order: what came before a synced change is synced with it.
        last = max(
            (i for i, (where, _, _) in enumerate(self._history) if where == path), default=-1
        )
        del self._history[: last + 1]

    def boot(self) -> str:
        return str(self.boots)

    def lock(self, path: str) -> _SimulatedLock | None:
        if path in self._locked:
            return None
        self._locked.add(path)
        return _SimulatedLock(self, path)

    # --- what goes wrong -------------------------------------------------------------------------

    def lose_power(self, choose: Choose) -> None:
        """Forget what was not synced, as far as chance (`choose`) will have it."""
        if self._history:
            kept = choose(len(self._history) + 1)
            if kept < len(self._history):
                _, self._names, self._directories = self._history[kept]
            self._history.clear()
        for content in self._names.values():
            _forget(content, choose)
        self._locked.clear()
        self.boots += 1

    def forget_locks(self) -> None:
        """The process that held them is dead."""
        self._locked.clear()

    def damage(self, path: str, position: int, mask: int = 0xFF) -> None:
        """Flip bits of one byte, where no checksum of the disk's own notices."""
        content = self._names[path]
        content.data[position] ^= mask
        content.durable = bytes(content.data)

    def _change(self, description: str, path: str) -> None:
        if self.before_change is not None:
            self.before_change(description)
        directory = path.rpartition("/")[0]
        self._history.append((directory, dict(self._names), set(self._directories)))

    def _take_space(self, content: _Content, position: int, size: int) -> int:
        """How many of `size` bytes fit."""
        if self.space_bytes is None:
            return size
        growth = max(position + size - len(content.data), 0)
        fits = min(growth, self.space_bytes)
        self.space_bytes -= fits
        return size - (growth - fits)

    def _give_space(self, size: int) -> None:
        if self.space_bytes is not None:
            self.space_bytes += size


def _write(data: bytearray, position: int, written: bytes) -> None:
    if len(data) < position:
        data += bytes(position - len(data))
    data[position : position + len(written)] = written


def _truncate(data: bytearray, size: int) -> None:
    del data[size:]
    data += bytes(size - len(data))


def _forget(content: _Content, choose: Choose) -> None:
    """Keep the durable bytes and some of the writes after them, the last of those perhaps torn."""
    data = bytearray(content.durable)
    kept = choose(len(content.writes) + 1)
    for position, written in content.writes[:kept]:
        if written is None:
            _truncate(data, position)
        else:
            _write(data, position, written)
    if kept < len(content.writes):
        position, written = content.writes[kept]
        if written is not None:
            torn = choose(len(written) + 1)
            _write(data, position, written[:torn])
            if choose(4) == 0:  # the size arrived, the data did not
                _write(data, position + torn, bytes(len(written) - torn))
    content.data = data
    content.durable = bytes(data)
    content.writes.clear()
