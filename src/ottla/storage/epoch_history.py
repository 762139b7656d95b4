"""Which leader epoch began at which offset: how replicas find where their logs part.

Invariants:
1. Epochs and start offsets both grow strictly from entry to entry.
2. No entry starts before the log does or after it ends.
3. The file may be behind, but never about entries that start before the active segment: whoever
   rolls a log writes it first. What is missing is learned again from the batches of the last
   segment, which every start after a crash reads. So taking the lead of ten thousand partitions,
   or writing the first record of an epoch, costs no file.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset
from ottla.storage import checkpoint
from ottla.storage.disk import Disk
from ottla.storage.flush import FlushJob


class EpochStart(msgspec.Struct, frozen=True):
    """The offset of the first record an epoch's leader wrote, or would have written."""

    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(msgspec.Struct, frozen=True):
    """The offset after the last record of `epoch`."""

    epoch: LeaderEpoch
    end_offset: Offset


class EpochHistory:
    """The entries in memory, and in a checkpoint file when that is written."""

    __slots__ = ("_disk", "_entries", "_path", "is_synced", "is_written", "latest")

    def __init__(self, disk: Disk, path: str, entries: list[EpochStart] | None = None) -> None:
        self._disk = disk
        self._path = path
        self._entries = entries or []
        self.is_written = entries is not None
        """Whether the file holds what is known here."""
        self.is_synced = False
        """Whether it holds that safe from a power cut, or will when the flush under way is done."""
        self.latest: LeaderEpoch = self._entries[-1].epoch if self._entries else NO_LEADER_EPOCH

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def assign(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """`epoch` begins at `start_offset`. Entries this contradicts go."""
        entries = self._entries
        if epoch < 0 or (entries and epoch == entries[-1].epoch):
            return
        kept = [e for e in entries if e.epoch < epoch and e.start_offset < start_offset]
        kept.append(EpochStart(epoch, start_offset))
        self._replace(kept)

    def end_of(self, epoch: LeaderEpoch, log_end: Offset) -> EpochEnd | None:
        """Where `epoch` ended, as the largest epoch known here that is not later."""
        entries = self._entries
        if not entries or epoch < 0 or epoch > entries[-1].epoch:
            return None
        if epoch == entries[-1].epoch:
            return EpochEnd(epoch, log_end)
        index = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if index == 0:
            return EpochEnd(epoch, entries[0].start_offset)
        return EpochEnd(entries[index - 1].epoch, entries[index].start_offset)

    def epoch_at(self, offset: int) -> LeaderEpoch:
        """The epoch whose leader wrote the record at `offset`."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[index - 1].epoch if index else NO_LEADER_EPOCH

    def truncate_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`: forget epochs that begin there or later."""
        if self._entries and self._entries[-1].start_offset >= end_offset:
            self._replace([e for e in self._entries if e.start_offset < end_offset])

    def truncate_start(self, start_offset: Offset) -> None:
        """The log now begins at `start_offset`: the epoch covering it begins there too."""
        index = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if index == 0 or self._entries[0].start_offset >= start_offset:
            return
        covering = EpochStart(self._entries[index - 1].epoch, start_offset)
        self._replace([covering, *self._entries[index:]])

    def _replace(self, entries: list[EpochStart]) -> None:
        self._entries = entries
        self.latest = entries[-1].epoch if entries else NO_LEADER_EPOCH
        self.is_written = self.is_synced = False

    def started_before(self, offset: int) -> tuple[EpochStart, ...]:
        return tuple(entry for entry in self._entries if entry.start_offset < offset)

    def write(self) -> None:
        """Bring the file up to date where it is not; the next flush of the log syncs it."""
        if not self.is_written:
            lines = (f"{entry.epoch} {entry.start_offset}" for entry in self._entries)
            checkpoint.write_lines(self._disk, self._path, lines, sync=False)
            self.is_written, self.is_synced = True, False

    def join(self, job: FlushJob) -> None:
        """Let a flush of the log sync the file too, where it was written since the last one: the
        recovery point may pass a sealed segment, whose epochs are not looked for from then on."""
        if self.is_written and not self.is_synced:
            job.paths.append(self._path)
            job.directory = self._path.rpartition("/")[0]
            self.is_synced = True

    @classmethod
    def load(cls, disk: Disk, path: str) -> EpochHistory | None:
        """The history in the file, or None where the file is missing or cannot be right."""
        lines = checkpoint.read_lines(disk, path)
        if lines is None:
            return None
        entries: list[EpochStart] = []
        for line in lines:
            try:
                epoch, start = map(int, line.split())
            except ValueError:
                return None
            if entries and (epoch <= entries[-1].epoch or start <= entries[-1].start_offset):
                return None
            entries.append(EpochStart(LeaderEpoch(epoch), Offset(start)))
        return cls(disk, path, entries)
