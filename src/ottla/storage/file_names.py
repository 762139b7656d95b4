"""The names of the files in a partition's directory. Knows names only, not what is inside."""

from __future__ import annotations

from typing import Final

from ottla.model.ids import Offset, TopicPartition

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"

DELETED: Final = ".deleted"
"""Waiting to be removed; readers that hold the file may still use it."""
CLEANED: Final = ".cleaned"
"""Written by a compaction that has not finished: worthless after a crash."""
SWAP: Final = ".swap"
"""Complete result of a compaction: a crash after this point ends in its favour."""
TEMPORARY: Final = ".tmp"

EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

INDEX_SUFFIXES: Final = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
SEGMENT_SUFFIXES: Final = (LOG, *INDEX_SUFFIXES)

_DELETED_DIRECTORY: Final = "-delete"
_STRAY_DIRECTORY: Final = "-stray"
_NAME_LENGTH_MAX: Final = 255


def file_name(base_offset: int, suffix: str) -> str:
    """`00000000000000000042.log`"""
    return f"{base_offset:020d}{suffix}"


def parse(name: str) -> tuple[Offset, str] | None:
    """The offset and the suffix (all of it, `.log.swap`) of a segment's file, else None."""
    stem, dot, suffix = name.partition(".")
    if not dot or len(stem) != 20 or not stem.isdigit():
        return None
    return Offset(int(stem)), dot + suffix


def parse_partition(name: str) -> TopicPartition | None:
    """The partition whose directory this is, or None for anything else (deleted ones too)."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isdecimal() or str(int(partition)) != partition:
        return None
    return TopicPartition(topic, int(partition))


def deleted_directory(partition: TopicPartition, unique: str) -> str:
    """The name a deleted partition's directory waits under: `topic-0.<unique>-delete`."""
    return _set_aside_directory(partition, unique, _DELETED_DIRECTORY)


def stray_directory(partition: TopicPartition, unique: str) -> str:
    """The name of a log that belongs to no known topic: `topic-0.<unique>-stray`."""
    return _set_aside_directory(partition, unique, _STRAY_DIRECTORY)


def _set_aside_directory(partition: TopicPartition, unique: str, ending: str) -> str:
    suffix = f"-{partition.partition}.{unique}{ending}"
    return partition.topic[: _NAME_LENGTH_MAX - len(suffix)] + suffix


def is_cut_short(name: str) -> bool:
    """Whether the name of a log set aside may lack the end of its topic's."""
    return len(name) == _NAME_LENGTH_MAX


def parse_stray(name: str) -> TopicPartition | None:
    """The partition whose stray log this directory is, or None for anything else."""
    stem, dot, _ = name.rpartition(".")
    return parse_partition(stem) if dot and name.endswith(_STRAY_DIRECTORY) else None


def is_deleted_directory(name: str) -> bool:
    return name.endswith(_DELETED_DIRECTORY) and "." in name
