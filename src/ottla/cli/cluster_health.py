"""Whether a cluster is well: what each broker holds, and what is wrong with which partition. Pure.

The wire does not say why a replica fell behind. What it does say is whether its broker is there,
and how many bytes it holds beside its leader's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.cli.output import bytes_text
from ottla.clients.cluster import Cluster
from ottla.clients.log_dirs import LogDir
from ottla.clients.metadata import BrokerInfo, PartitionInfo, TopicInfo
from ottla.clients.placement import Reassignment
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class Findings:
    """What was asked of a cluster."""

    cluster: Cluster
    topics: Sequence[TopicInfo]
    moves: Sequence[Reassignment] = ()
    min_in_sync: Mapping[str, int] = field(default_factory=dict)
    """By topic, where it was asked for: that of topics with a replica missing."""
    directories: Sequence[LogDir] = ()


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What one broker has."""

    broker: BrokerInfo
    is_controller: bool
    leads: int
    is_preferred: int
    """How many partitions it would lead if every preferred leader did."""
    replicas: int
    behind: int
    """How many of its replicas are not in sync."""


@dataclass(frozen=True, slots=True)
class Ailing:
    """A partition with something wrong, and what is known of the reason."""

    partition: TopicPartition
    row: PartitionInfo
    min_in_sync: int
    reasons: tuple[str, ...]

    @property
    def is_offline(self) -> bool:
        """Nobody can read or write it."""
        return self.row.leader < 0

    @property
    def is_under_min_in_sync(self) -> bool:
        """It can be read; writes with acks=all are refused."""
        return not self.is_offline and len(self.row.in_sync) < self.min_in_sync

    @property
    def state(self) -> str:
        if self.is_offline:
            return "offline"
        return "under min in sync" if self.is_under_min_in_sync else "under-replicated"


@dataclass(frozen=True, slots=True)
class Health:
    """A cluster at one moment."""

    cluster: Cluster
    loads: tuple[BrokerLoad, ...]
    partitions: int
    ailing: tuple[Ailing, ...]
    moves: tuple[Reassignment, ...]
    broken_directories: tuple[LogDir, ...]

    @property
    def has_controller(self) -> bool:
        return self.cluster.controller >= 0

    @property
    def offline(self) -> int:
        return sum(each.is_offline for each in self.ailing)

    @property
    def under_min_in_sync(self) -> int:
        return sum(each.is_under_min_in_sync for each in self.ailing)

    @property
    def under_replicated(self) -> int:
        """Everything that lacks a replica in sync, whatever else is wrong with it."""
        return len(self.ailing)

    @property
    def is_healthy(self) -> bool:
        return self.has_controller and not self.ailing and not self.broken_directories


def missing_replicas(row: PartitionInfo, move: Reassignment | None) -> tuple[BrokerId, ...]:
    """Replicas that should be in sync and are not; one that only just arrives need not be yet."""
    arriving = move.adding if move is not None else ()
    return tuple(each for each in row.replicas if each not in (*row.in_sync, *arriving))


def ailing_topics(topics: Iterable[TopicInfo], moves: Iterable[Reassignment]) -> list[str]:
    """The topics to ask more about."""
    by_partition = {move.partition: move for move in moves}
    return [
        topic.name
        for topic in topics
        if any(
            row.leader < 0
            or missing_replicas(row, by_partition.get(TopicPartition(topic.name, row.partition)))
            for row in topic.partitions
        )
    ]


def health_of(found: Findings) -> Health:
    """What the findings mean."""
    moves = {move.partition: move for move in found.moves}
    rows = [
        (TopicPartition(topic.name, row.partition), row)
        for topic in found.topics
        for row in topic.partitions
    ]
    ailing = []
    for partition, row in rows:
        missing = missing_replicas(row, moves.get(partition))
        if missing or row.leader < 0:
            reasons = tuple(_reason(found, partition, row, each) for each in missing)
            least = found.min_in_sync.get(partition.topic, 1)
            ailing.append(Ailing(partition, row, least, reasons))
    return Health(
        cluster=found.cluster,
        loads=_loads(found.cluster, [row for _, row in rows]),
        partitions=len(rows),
        ailing=tuple(sorted(ailing, key=_worst_first)),
        moves=tuple(found.moves),
        broken_directories=tuple(
            each for each in found.directories if each.error is not ErrorCode.NONE
        ),
    )


def _loads(cluster: Cluster, rows: Sequence[PartitionInfo]) -> tuple[BrokerLoad, ...]:
    leads = Counter(row.leader for row in rows)
    preferred = Counter(row.replicas[0] for row in rows if row.replicas)
    replicas = Counter(each for row in rows for each in row.replicas)
    in_sync = Counter(each for row in rows for each in row.in_sync)
    return tuple(
        BrokerLoad(
            broker=broker,
            is_controller=broker.id == cluster.controller,
            leads=leads[broker.id],
            is_preferred=preferred[broker.id],
            replicas=replicas[broker.id],
            behind=replicas[broker.id] - in_sync[broker.id],
        )
        for broker in cluster.brokers
    )


def _worst_first(each: Ailing) -> tuple[int, TopicPartition]:
    severity = 0 if each.is_offline else 1 if each.is_under_min_in_sync else 2
    return severity, each.partition


def _reason(found: Findings, partition: TopicPartition, row: PartitionInfo, broker: int) -> str:
    if broker not in {each.id for each in found.cluster.brokers}:
        return f"broker {broker} is not there"
    held = _held_bytes(found.directories, partition)
    own, leaders = held.get(broker), held.get(row.leader)
    if found.directories and own is None:
        return f"broker {broker} is there and does not hold it"
    if own is None or leaders is None:
        return f"broker {broker} is there and not in sync"
    if own < leaders:
        return f"broker {broker} is there and {bytes_text(leaders - own)} behind its leader"
    return f"broker {broker} is there, has as much as its leader, and will be in sync soon"


def _held_bytes(directories: Iterable[LogDir], partition: TopicPartition) -> dict[int, int]:
    return {
        each.broker: each.partition_bytes[partition]
        for each in directories
        if partition in each.partition_bytes
    }
