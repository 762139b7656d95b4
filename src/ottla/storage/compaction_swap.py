"""How a compacted segment takes the place of old ones so that a crash at any moment does no harm.

The phases, each ended by a sync of the directory:
1. New files are written as `.cleaned` and synced. After a crash they are removed again.
2. They are renamed to `.swap`, the data file last. From then on the new segment wins.
3. Old segments it covers are deleted in order, then `.swap` falls off, the data file last.

One new segment replaces a run of old ones and begins at the first one's base offset.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model.ids import Offset
from ottla.storage import file_names
from ottla.storage.batch_scan import walk
from ottla.storage.disk import Disk, Entry

_WORTHLESS = (file_names.DELETED, file_names.CLEANED, file_names.TEMPORARY)


def settle_interrupted(disk: Disk, directory: str) -> list[Entry]:
    """Finish or undo what a stop interrupted; returns what is in the directory then."""
    entries = disk.entries(directory)
    names = [entry.name for entry in entries]
    unfinished = [n for n in names if n.endswith((*_WORTHLESS, file_names.SWAP))]
    if not unfinished:
        return entries
    for name in unfinished:
        if name.endswith(_WORTHLESS):
            disk.remove(f"{directory}/{name}")
    for name in unfinished:
        parsed = file_names.parse(name)
        if parsed is not None and parsed[1] == file_names.LOG + file_names.SWAP:
            base_offset = parsed[0]
            end_offset = _end_offset(disk, f"{directory}/{name}", base_offset)
            covered = _bases_between(names, base_offset, end_offset)
            remove_segments(disk, directory, covered)
            finish_swap(disk, directory, base_offset)
    for entry in disk.entries(directory):
        if entry.name.endswith(file_names.SWAP):
            disk.remove(f"{directory}/{entry.name}")
    disk.sync_directory(directory)
    return disk.entries(directory)


def commit_swap(disk: Disk, directory: str, base_offset: Offset) -> None:
    """Phase 2: from here on the new segment wins."""
    for suffix in (*file_names.INDEX_SUFFIXES, file_names.LOG):
        path = f"{directory}/{file_names.file_name(base_offset, suffix)}"
        if disk.exists(path + file_names.CLEANED):
            disk.rename(path + file_names.CLEANED, path + file_names.SWAP)
    disk.sync_directory(directory)


def finish_swap(disk: Disk, directory: str, base_offset: Offset) -> None:
    """The end of phase 3: the new files take the names of the old."""
    for suffix in (*file_names.INDEX_SUFFIXES, file_names.LOG):
        path = f"{directory}/{file_names.file_name(base_offset, suffix)}"
        if disk.exists(path + file_names.SWAP):
            disk.rename(path + file_names.SWAP, path)
    disk.sync_directory(directory)


def remove_segments(disk: Disk, directory: str, bases: Iterable[Offset]) -> None:
    """Remove the files of segments, lower offsets first."""
    for base_offset in sorted(bases):
        for suffix in (*file_names.SEGMENT_SUFFIXES, file_names.SNAPSHOT):
            disk.remove(f"{directory}/{file_names.file_name(base_offset, suffix)}")


def _end_offset(disk: Disk, path: str, base_offset: Offset) -> Offset:
    file = disk.open(path)
    end_offset = base_offset
    for header in walk(file, 0, file.size()):
        end_offset = Offset(header.last_offset + 1)
    file.close()
    return end_offset


def _bases_between(names: Iterable[str], start: Offset, end: Offset) -> list[Offset]:
    parsed = (file_names.parse(name) for name in names)
    return [p[0] for p in parsed if p and p[1] == file_names.LOG and start < p[0] < end]
