"""Files that are to go: renamed at once, removed after a delay, as a reader may still hold them."""

from __future__ import annotations

from collections import deque

from ottla.storage import file_names
from ottla.storage.disk import Disk


class DeletedFiles:
    """A queue of renamed files, in the order in which they fall due."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._waiting: deque[tuple[int, str]] = deque()

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

    def remove_due(self, now_ms: int) -> int:
        """Remove those whose time has come; how many that were."""
        count = 0
        while self._waiting and self._waiting[0][0] <= now_ms:
            _, path = self._waiting.popleft()
            self._disk.remove(path)
            count += 1
        return count
