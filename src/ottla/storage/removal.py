"""Taking files off the disk, which may be slow: a job to run in a thread."""

from __future__ import annotations

import msgspec

from ottla.storage.disk import Disk


class RemovalJob(msgspec.Struct, frozen=True):
    """Files and whole directories that no log knows any more."""

    disk: Disk
    files: list[str]
    directories: list[str]

    def run(self) -> int:
        """Remove all of it; how many files and directories were named. Safe in any one thread."""
        for path in self.files:
            self.disk.remove(path)
        for path in self.directories:
            self._remove_tree(path)
        return len(self.files) + len(self.directories)

    def _remove_tree(self, path: str) -> None:
        for entry in self.disk.entries(path):
            if entry.is_directory:
                self._remove_tree(f"{path}/{entry.name}")
            else:
                self.disk.remove(f"{path}/{entry.name}")
        self.disk.remove_directory(path)
