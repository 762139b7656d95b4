"""A cluster under load, what is to be done to it, and what may come of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from ottla.clients.metadata import PartitionInfo
from ottla.model.ids import TopicPartition
from ottla.testing.cluster import Cluster
from support.eventually import eventually
from support.faults.load import CAREFUL, Load, Manner

RECORDS_BEFORE = 60
"""Acknowledged in every partition to every producer before and after something is done."""
SILENT = "the metadata store is silent"
"""What a broker logs when its session may have ended."""
OUTAGE_SECONDS = 1.5
"""Without any acknowledgement for so long, nobody serves."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster under load, and the chance to choose by."""

    cluster: Cluster
    load: Load
    random: Random

    @property
    def leader(self) -> int:
        return self.cluster.leader_of(self.load.topic, 0)

    def others(self, broker: int) -> list[int]:
        return [number for number in range(len(self.cluster.brokers)) if number != broker]

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.load.topic, index) for index in range(self.load.partitions)]

    def rows(self) -> list[PartitionInfo]:
        """The partitions as the brokers that answer see them: the latest epoch of each."""
        latest: dict[int, PartitionInfo] = {}
        for picture in self.cluster.view.pictures().values():
            topic = picture.topics.get(self.load.topic)
            for row in topic.partitions if topic is not None else ():
                known = latest.get(row.partition)
                if known is None or known.leader_epoch < row.leader_epoch:
                    latest[row.partition] = row
        return [latest[partition] for partition in sorted(latest)]

    def wait_rows(self, are_so: Callable[[list[PartitionInfo]], bool], what: str) -> None:
        """Returns when all partitions are known and something is true of them."""
        last: list[PartitionInfo] = []

        def is_there() -> bool | None:
            last[:] = self.rows()
            return (len(last) == self.load.partitions and are_so(last)) or None

        self.cluster.view.wait(is_there, lambda: f"{what}: {last}")

    def wait_in_sync(self, broker: int) -> None:
        """Returns when this broker's replicas of the topic are in sync."""
        self.wait_rows(
            lambda rows: all(broker in row.in_sync for row in rows), f"broker {broker} in sync"
        )

    def wait_in_doubt(self) -> None:
        """Returns when no broker is sure any more that it may lead."""
        eventually(
            lambda: all(
                SILENT in broker.log_path.read_text(errors="replace")
                for broker in self.cluster.brokers
            ),
            "doubt of every broker",
            timeout_seconds=60,
        )

    def wait_other_leader(self, old: int) -> int:
        """Returns when somebody else leads the first partition."""

        def other() -> int | None:
            found = self.cluster.view.leader(self.load.topic, 0)
            return found if found not in (None, old) else None

        return self.cluster.view.wait(other, lambda: f"a leader that is not {old}")

    def wait_other_controller(self, old: int) -> int:
        def other() -> int | None:
            found = self.cluster.view.controller()
            return found if found not in (None, old) else None

        return self.cluster.view.wait(other, lambda: f"a controller that is not {old}")

    def go_on(self) -> None:
        self.load.wait_acknowledged(RECORDS_BEFORE)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done, and the cluster, topic and producers it is done to."""

    do: Callable[[Stage], None]
    brokers: int = 3
    zookeepers: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every broker."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    replicas: tuple[int, ...] = ()
    """Of every partition, the preferred leader first; where empty, as the controller likes."""
    manners: tuple[Manner, ...] = CAREFUL
    may_lose: bool = False
    """Whether acknowledged records may be lost, which is what some settings ask for."""
    small_disk_of: int | None = None
    """The broker whose data is on a disk of a few megabytes."""
