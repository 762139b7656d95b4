"""Logs that the metadata does not know, set aside under a name of their own and kept.

A log is set aside if nothing proves that its topic was deleted: the metadata may be damaged, older
than the log, or another cluster's. It comes back by itself when a topic with its id does.
Does not know the metadata.
"""

from __future__ import annotations

from hashlib import blake2b

from ottla.model.ids import TopicId, TopicPartition
from ottla.storage import file_names
from ottla.storage.directory_identity import read_topic_id
from ottla.storage.disk import Disk


class Strays:
    """The stray logs of one data directory."""

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._names: dict[str, None] = {}

    def found(self, name: str) -> None:
        """There is a stray log under this name."""
        self._names[name] = None

    def set_aside(self, partition: TopicPartition, now_ms: int) -> str:
        """Rename the log of a partition, durably; its new path."""
        unique = blake2b(f"{partition} {now_ms} {len(self._names)}".encode(), digest_size=16)
        name = file_names.stray_directory(partition, unique.hexdigest())
        target = f"{self._root}/{name}"
        self._disk.rename(f"{self._root}/{partition}", target)
        self._disk.sync_directory(self._root)
        self._names[name] = None
        return target

    def bring_back(self, partition: TopicPartition, topic_id: TopicId) -> bool:
        """Give the log of a partition of this very topic its name back; whether there is one."""
        name = self.find(partition, topic_id)
        if name is None:
            return False
        self._disk.rename(f"{self._root}/{name}", f"{self._root}/{partition}")
        self._disk.sync_directory(self._root)
        del self._names[name]
        return True

    def find(self, partition: TopicPartition, topic_id: TopicId) -> str | None:
        """The name of the stray log of this topic's partition, if there is one."""
        for name in self._names:
            if file_names.parse_stray(name) == partition:
                found = read_topic_id(self._disk, f"{self._root}/{name}")
                if found == topic_id:
                    return name
        return None
