"""What a seed stands for: the size of the cluster, what runs on it and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

SESSION_TIMEOUT_MS: Final = 6_000
METADATA: Final = f"zookeeper://zookeeper:2181/ottla?session_timeout_ms={SESSION_TIMEOUT_MS}"
PRODUCERS: Final = ("idempotent", "idempotent", "plain", "leader-only", "transactional")
ALL_FAULTS: Final = (
    "kill",
    "kill-all",
    "power",
    "pause",
    "isolate",
    "one-way",
    "from-store",
    "from-brokers",
    "bridge",
    "slow-network",
    "slow-disk",
    "session",
    "quorum",
    "connections",
    "lost-answers",
    "full-disk",
    "failing-sync",
    "clock",
    "stop",
    "client",
    "elect",
    "reassign",
    "topics",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One world's story, before it is told."""

    seed: int
    brokers: int
    replication: int
    topics: Mapping[str, int]
    """How many partitions each has."""
    syncs_always: bool
    """Whether every message is synced before it counts; then any power may be lost at any time."""
    producers: tuple[str, ...]
    members: int
    """How many consumers the group has."""
    group_protocol: str
    faults: tuple[str, ...]
    pause_seconds: tuple[float, float]
    """Between one fault and the next."""
    outage_seconds: tuple[float, float]
    """Until what went wrong is set right."""
    chaos_seconds: float

    @property
    def settings(self) -> dict[str, str]:
        """What all brokers are told."""
        return {
            "metadata": METADATA,
            "default.replication.factor": str(self.replication),
            "min.insync.replicas": str(min(2, self.replication)),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": str(self.replication),
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": str(self.replication),
            "transaction.state.log.min.isr": str(min(2, self.replication)),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
            "replica.lag.time.max.ms": "4000",
            "group.initial.rebalance.delay.ms": "0",
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.session.timeout.ms": "6000",
            "group.min.session.timeout.ms": "1000",
            "log.flush.offset.checkpoint.interval.ms": "5000",
            "leader.imbalance.check.interval.seconds": "7",
            "controlled.shutdown.retry.backoff.ms": "500",
            "log.roll.ms": "5000",
            **({"log.flush.interval.messages": "1"} if self.syncs_always else {}),
        }


def plan(seed: int) -> Plan:
    """The story of a seed."""
    chance = Random(f"{seed}/plan")
    brokers = chance.choice((1, 3, 3, 3, 3, 4, 5))
    syncs_always = chance.random() < 0.4
    faults = set(chance.sample(ALL_FAULTS, chance.randint(2, 8)))
    if brokers == 1:
        # Alone, a broker that is not told to sync every message may lose what was not synced.
        faults |= {"kill"}
        syncs_always = syncs_always or bool(faults & {"power"})
    return Plan(
        seed=seed,
        brokers=brokers,
        replication=min(3, brokers),
        topics={f"topic-{number}": chance.randint(1, 3) for number in range(chance.randint(1, 2))},
        syncs_always=syncs_always,
        producers=tuple(chance.choice(PRODUCERS) for _ in range(chance.randint(1, 3))),
        members=chance.randint(0, 3),
        group_protocol=chance.choice(("classic", "consumer")),
        faults=tuple(sorted(faults)),
        pause_seconds=chance.choice(((0.1, 2.0), (0.5, 5.0), (2.0, 8.0))),
        outage_seconds=chance.choice(((0.2, 3.0), (0.2, 10.0), (4.0, 15.0))),
        chaos_seconds=chance.choice((8.0, 15.0, 25.0)),
    )
