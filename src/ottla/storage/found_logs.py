"""What the logs of a data directory tell of themselves, without metadata and without opening them.

For rebuilding metadata that was lost. Reads headers only; the directory must not be in use.
"""

from __future__ import annotations

import msgspec

from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset, TopicId, TopicPartition
from ottla.storage import file_names
from ottla.storage.batch_scan import walk
from ottla.storage.directory_identity import read_topic_id
from ottla.storage.disk import Disk
from ottla.storage.epoch_history import EpochHistory


class FoundLog(msgspec.Struct, frozen=True):
    """One partition's log."""

    partition: TopicPartition
    directory: str
    """The name of its folder: the partition's own, or that of a stray log."""
    topic_id: TopicId | None
    latest_epoch: LeaderEpoch
    start_offset: Offset
    end_offset: Offset
    producer_id_max: int
    """The highest producer id that has written to it; -1 if none has."""


def find_logs(disk: Disk, root: str) -> list[FoundLog]:
    """Every log in the directory, in order; of several of one partition, the one in its place."""
    found: dict[TopicPartition, FoundLog] = {}
    for entry in disk.entries(root):
        name = entry.name
        in_place = file_names.parse_partition(name)
        partition = in_place or file_names.parse_stray(name)
        if not entry.is_directory or partition is None:
            continue
        if in_place is None and (partition in found or file_names.is_cut_short(name)):
            continue
        log = _look(disk, f"{root}/{name}", partition)
        if log is not None:
            found[partition] = log
    return sorted(found.values(), key=lambda log: log.partition)


def _look(disk: Disk, path: str, partition: TopicPartition) -> FoundLog | None:
    names = sorted(entry.name for entry in disk.entries(path) if not entry.is_directory)
    segments = [name for name in names if _is_segment(name)]
    if not segments and file_names.PARTITION_METADATA not in names:
        return None
    history = EpochHistory.load(disk, f"{path}/{file_names.EPOCHS}")
    epoch = history.latest if history is not None else NO_LEADER_EPOCH
    start = end = _base_offset(segments[0]) if segments else Offset(0)
    producer_id_max = -1
    for name in segments:
        end = max(end, _base_offset(name))
        file = disk.open(f"{path}/{name}")
        try:
            for header in walk(file, 0, file.size()):
                epoch = LeaderEpoch(max(epoch, header.leader_epoch))
                end = Offset(max(end, header.last_offset + 1))
                producer_id_max = max(producer_id_max, header.producer_id)
        finally:
            file.close()
    topic_id = read_topic_id(disk, path)
    name = path.rpartition("/")[2]
    return FoundLog(partition, name, topic_id, epoch, start, end, producer_id_max)


def _is_segment(name: str) -> bool:
    parsed = file_names.parse(name)
    return parsed is not None and parsed[1] == file_names.LOG


def _base_offset(name: str) -> Offset:
    parsed = file_names.parse(name)
    assert parsed is not None
    return parsed[0]
