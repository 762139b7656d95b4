"""Kafka's checkpoint files: a version line, a count line, then one line an entry.

Written to a temporary file and renamed, so that a crash leaves the old content or the new.
A file that cannot be right reads as None; callers then fall back on what the log itself says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ottla.model.ids import Offset, TopicPartition
from ottla.storage.disk import Disk, read_file, replace_file

VERSION: Final = "0"


def write_lines(disk: Disk, path: str, lines: Iterable[str], *, sync: bool) -> None:
    entries = list(lines)
    text = "\n".join([VERSION, str(len(entries)), *entries, ""])
    replace_file(disk, path, text.encode(), sync=sync)


def read_lines(disk: Disk, path: str) -> list[str] | None:
    data = read_file(disk, path)
    if data is None:
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return None
    if len(lines) < 2 or lines[0].strip() != VERSION or not lines[1].strip().isdecimal():
        return None
    entries = [line for line in lines[2:] if line.strip()]
    return entries if len(entries) == int(lines[1]) else None


def write_offsets(
    disk: Disk, path: str, offsets: Mapping[TopicPartition, Offset], *, sync: bool = True
) -> None:
    """One line a partition: `topic partition offset`."""
    lines = (f"{key.topic} {key.partition} {offset}" for key, offset in offsets.items())
    write_lines(disk, path, lines, sync=sync)


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    """What `write_offsets` wrote; empty where the file is missing or damaged."""
    offsets: dict[TopicPartition, Offset] = {}
    for line in read_lines(disk, path) or ():
        words = line.split()
        try:
            topic, partition, offset = words[0], int(words[1]), int(words[2])
        except (IndexError, ValueError):
            return {}
        offsets[TopicPartition(topic, partition)] = Offset(offset)
    return offsets


class CheckpointJob(msgspec.Struct, frozen=True):
    """Offsets to be written, by the name of their file. Nobody else changes them."""

    disk: Disk
    directory: str
    offsets: Mapping[str, Mapping[TopicPartition, Offset]]
    written: dict[str, Mapping[TopicPartition, Offset]]
    """What the files hold for sure, and what this job adds to it."""

    def run(self) -> None:
        """Write and sync each file. Safe in any one thread, one job after the other."""
        for name, offsets in self.offsets.items():
            write_offsets(self.disk, f"{self.directory}/{name}", offsets)
            self.written[name] = offsets
