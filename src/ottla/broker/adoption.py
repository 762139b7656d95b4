"""Rebuilds the metadata of a broker that does not run from the logs it has.

The logs tell which topics there were, their ids, partitions and epochs. They do not tell settings:
an adopted topic keeps everything until its retention is set again. Producer ids go on above every
one that a log has seen, as a broker takes a batch with an id and a sequence it knows for a repeated
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from ottla.broker.group_coordinator import OFFSETS_TOPIC
from ottla.broker.metadata_store import METADATA_FILE, is_shared, open_store
from ottla.broker.transaction_coordinator import TRANSACTIONS_TOPIC
from ottla.broker.unique_ids import new_cluster_id, new_topic_id
from ottla.cluster import layout
from ottla.cluster.adoption import (
    ADOPTION,
    KEEP_EVERYTHING,
    AdoptableLog,
    AdoptableTopic,
    Adoption,
    AdoptionNotes,
    adopt,
)
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.producer_ids import next_block
from ottla.cluster.sqlite_tree import MARK_SUFFIX, SqliteTree
from ottla.cluster.store import MetadataDamaged, MetadataLost, MetadataStore
from ottla.errors import ConfigError
from ottla.model.clock import Clock
from ottla.model.ids import BrokerId, TopicId
from ottla.settings.broker import BrokerSettings
from ottla.storage.directory_identity import Identity, read_identity, write_identity, write_topic_id
from ottla.storage.disk import LocalDisk
from ottla.storage.found_logs import FoundLog, find_logs
from ottla.storage.log_directory import LOCK

COMPACTED: Final = {"cleanup.policy": "compact"}
MIXED_IDS: Final = "its partitions are of different topics; move the folders of one of them away"


class AdoptionReport(msgspec.Struct, frozen=True):
    """What was done."""

    adoption: Adoption
    logs: Sequence[FoundLog]
    set_aside: Sequence[str]
    """Files of damaged metadata, under their new names."""


async def adopt_logs(settings: BrokerSettings, root: str, clock: Clock) -> AdoptionReport:
    """Let the metadata know every log below `root`."""
    disk = LocalDisk()
    if not disk.exists(root):
        raise ConfigError("log.dirs", f"{root} does not exist", "name the broker's data directory")
    lock = disk.lock(f"{root}/{LOCK}")
    if lock is None:
        raise ConfigError("log.dirs", f"{root} is in use by a broker", "stop that broker first")
    async with AsyncExitStack() as stack:
        stack.callback(lock.release)
        logs = [_in_place(disk, root, log) for log in find_logs(disk, root)]
        topics, refused = _topics(logs)
        known = read_identity(disk, root)
        identity = known or Identity(BrokerId(settings.node_id), new_cluster_id())
        set_aside = [] if is_shared(settings) else _set_damaged_aside(Path(root), clock)
        store = await open_store(settings, Path(root), clock)
        stack.push_async_callback(store.close)
        adoption = await _adopt(store, identity, topics, clock)
        await _skip_producer_ids(store, identity.node_id, logs)
        _note_identity(disk, root, identity, topics, logs)
        adoption.refused |= refused
        return AdoptionReport(adoption, logs, set_aside)


async def _adopt(
    store: MetadataStore, identity: Identity, topics: Sequence[AdoptableTopic], clock: Clock
) -> Adoption:
    metadata = await ClusterMetadata.open(store, cluster_id=identity.cluster_id)
    found = metadata.image.cluster_id
    if found != identity.cluster_id:
        raise MetadataLost(f"it has cluster {found} in it, the logs are of {identity.cluster_id}")
    if metadata.image.brokers:
        running = ", ".join(map(str, sorted(metadata.image.brokers)))
        raise ConfigError("metadata", f"brokers run (node {running})", "stop all brokers first")
    epoch_before = metadata.image.controller_epoch
    await metadata.become_controller(identity.node_id, clock.now_ms())
    notes = AdoptionNotes(await store.get(ADOPTION), epoch_before=epoch_before)
    # A change may be decided anew on a newer picture, each time from the notes as they were found.
    return await metadata.change(
        lambda draft: adopt(draft, identity.node_id, topics, notes.copy(), _configs)
    )


def _topics(logs: Sequence[FoundLog]) -> tuple[list[AdoptableTopic], dict[str, str]]:
    """The topics that the logs are of, and why some are none."""
    by_name: dict[str, list[FoundLog]] = {}
    for log in logs:
        by_name.setdefault(log.partition.topic, []).append(log)
    topics: list[AdoptableTopic] = []
    refused: dict[str, str] = {}
    for name, of_topic in by_name.items():
        ids = {log.topic_id for log in of_topic if log.topic_id is not None}
        if len(ids) > 1:
            refused[name] = MIXED_IDS
            continue
        topic_id = next(iter(ids), None) or new_topic_id()
        adoptable = tuple(map(_adoptable, of_topic))
        topics.append(AdoptableTopic(name, TopicId(topic_id), adoptable))
    return topics, refused


def _adoptable(log: FoundLog) -> AdoptableLog:
    return AdoptableLog(log.partition.partition, log.latest_epoch, log.end_offset)


def _configs(topic: str) -> Mapping[str, str]:
    return COMPACTED if topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC) else KEEP_EVERYTHING


async def _skip_producer_ids(
    store: MetadataStore, broker: BrokerId, logs: Sequence[FoundLog]
) -> None:
    """Let the next id given out be above all that were seen."""
    highest = max((log.producer_id_max for log in logs), default=-1)
    node = await store.get(layout.PRODUCER_ID_BLOCK)
    block, _ = next_block(node, broker)
    if block[0] <= highest:
        _, claim = next_block(node, broker, at_least=highest + 1)
        await store.multi([claim])


def _in_place(disk: LocalDisk, root: str, log: FoundLog) -> FoundLog:
    """A stray log under its partition's own name again."""
    if log.directory == str(log.partition):
        return log
    disk.rename(f"{root}/{log.directory}", f"{root}/{log.partition}")
    disk.sync_directory(root)
    return replace(log, directory=str(log.partition))


def _note_identity(
    disk: LocalDisk,
    root: str,
    identity: Identity,
    topics: Sequence[AdoptableTopic],
    logs: Sequence[FoundLog],
) -> None:
    """Write what the directory lacks: whose it is, and of which topics its logs are."""
    if read_identity(disk, root) is None:
        write_identity(disk, root, identity)
    ids = {topic.name: topic.id for topic in topics}
    for log in logs:
        if log.topic_id is None and (topic_id := ids.get(log.partition.topic)) is not None:
            write_topic_id(disk, f"{root}/{log.directory}", topic_id, sync=True)


def _set_damaged_aside(root: Path, clock: Clock) -> list[str]:
    """Move metadata out of the way that cannot be used; the new names.

    Metadata that only lacks its last commits is sound: then nothing but the mark has to go.
    """
    path = root / METADATA_FILE
    for suffixes in ((MARK_SUFFIX,), ("", "-wal", "-shm")):
        moved: list[str] = []
        try:
            SqliteTree(path).close()
            return moved
        except MetadataDamaged:
            for suffix in suffixes:
                moved += _move_aside(path.with_name(path.name + suffix), clock.now_ms())
    return moved


def _move_aside(path: Path, now_ms: int) -> list[str]:
    if not path.exists():
        return []
    return [str(path.rename(path.with_name(f"{path.name}.damaged-{now_ms}")))]
