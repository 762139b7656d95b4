"""Files that are to go: renamed at once, removed after a delay, as a reader may still hold them."""

from __future__ import annotations

from ottla.storage import file_names
from ottla.storage.disk import Disk


class DeletedFiles:
    """Renamed files, and from when each may be removed."""

    __slots__ = ("_disk", "_waiting")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._waiting: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, paths: list[str], due_ms: int) -> None:
        """Rename each file that exists, so that it is no part of the log any more."""
        for path in paths:
            renamed = path + file_names.DELETED
            try:
                self._disk.rename(path, renamed)
            except FileNotFoundError:
                continue
            self._waiting.append((due_ms, renamed))

    def take_due(self, now_ms: int) -> list[str]:
        """Those whose time has come; removing them is the caller's business from now on."""
        due = [path for due_ms, path in self._waiting if due_ms <= now_ms]
        if due:
            self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return due
