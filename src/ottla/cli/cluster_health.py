"""Whether a cluster is well: what each broker holds, what is wrong with which partition. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.cli.absence_report import ROOM_BYTES_MIN, Missing, text_of
from ottla.clients.absences import Absence
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
    absences: Mapping[TopicPartition, Sequence[Absence]] = field(default_factory=dict)
    """What leaders say of replicas that are not in sync."""


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
    missing: tuple[Missing, ...]
    needed: tuple[BrokerId, ...] = ()
    """The last in sync, where nobody leads because none of them is there."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each replica that is not as it should be."""
        return reasons_of([self])

    @property
    def kind(self) -> tuple[object, ...]:
        """The same for all partitions to which the same has happened."""
        return self.state, self.needed, *(each.kind for each in self.missing)

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


@dataclass(frozen=True, slots=True)
class Ill:
    """Partitions to which the same has happened."""

    partitions: tuple[Ailing, ...]

    @property
    def state(self) -> str:
        return self.partitions[0].state

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is told of each, and of all of them together."""
        return reasons_of(self.partitions)


def grouped(ailing: Iterable[Ailing]) -> list[Ill]:
    """Partitions by what has happened to them, in the order they are in."""
    groups: dict[tuple[object, ...], list[Ailing]] = {}
    for each in ailing:
        groups.setdefault(each.kind, []).append(each)
    return [Ill(tuple(group)) for group in groups.values()]


def reasons_of(group: Sequence[Ailing]) -> tuple[str, ...]:
    """What is said of partitions of one kind: a sentence for each missing replica."""
    first = group[0]
    last_in_sync = [
        f"broker {broker}, which was in sync last, is not there" for broker in first.needed
    ]
    others = [
        text_of(of_replica) for of_replica in zip(*(each.missing for each in group), strict=True)
    ]
    return (*last_in_sync, *others)


def missing_replicas(row: PartitionInfo, move: Reassignment | None) -> tuple[BrokerId, ...]:
    """Replicas that should be in sync and are not; one that only just arrives need not be yet."""
    arriving = move.adding if move is not None else ()
    return tuple(each for each in row.replicas if each not in (*row.in_sync, *arriving))


def ailing_topics(topics: Iterable[TopicInfo], moves: Iterable[Reassignment]) -> list[str]:
    """The topics to ask more about."""
    return list(dict.fromkeys(topic for topic, _ in _ailing_rows(topics, moves)))


def ailing_leaders(
    topics: Iterable[TopicInfo], moves: Iterable[Reassignment]
) -> dict[BrokerId, set[str]]:
    """The leaders to ask why, and of which topics."""
    leaders: dict[BrokerId, set[str]] = {}
    for topic, row in _ailing_rows(topics, moves):
        if row.leader >= 0:
            leaders.setdefault(row.leader, set()).add(topic)
    return leaders


def _ailing_rows(
    topics: Iterable[TopicInfo], moves: Iterable[Reassignment]
) -> Iterator[tuple[str, PartitionInfo]]:
    by_partition = {move.partition: move for move in moves}
    for topic in topics:
        for row in topic.partitions:
            move = by_partition.get(TopicPartition(topic.name, row.partition))
            if row.leader < 0 or missing_replicas(row, move):
                yield topic.name, row


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
            told = tuple(_missing(found, partition, row, each) for each in missing)
            least = found.min_in_sync.get(partition.topic, 1)
            ailing.append(Ailing(partition, row, least, told, _needed(found.cluster, row)))
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


def _needed(cluster: Cluster, row: PartitionInfo) -> tuple[BrokerId, ...]:
    alive = {each.id for each in cluster.brokers}
    return tuple(each for each in row.in_sync if each not in alive) if row.leader < 0 else ()


def _missing(
    found: Findings, partition: TopicPartition, row: PartitionInfo, broker: BrokerId
) -> Missing:
    held = _held_bytes(found.directories, partition)
    own, leaders = held.get(broker), held.get(row.leader)
    of_broker = [each for each in found.directories if each.broker == broker]
    return Missing(
        broker,
        is_there=broker in {each.id for each in found.cluster.brokers},
        absence=next(
            (each for each in found.absences.get(partition, ()) if each.replica == broker), None
        ),
        behind_bytes=None if own is None or leaders is None else max(0, leaders - own),
        lacks_log=bool(of_broker) and own is None,
        has_full_disk=any(0 <= each.usable_bytes < ROOM_BYTES_MIN for each in of_broker),
    )


def _held_bytes(directories: Iterable[LogDir], partition: TopicPartition) -> dict[int, int]:
    return {
        each.broker: each.partition_bytes[partition]
        for each in directories
        if partition in each.partition_bytes
    }
