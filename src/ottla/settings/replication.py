"""The broker's settings for leaders and replicas in a cluster, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.settings.declare import LONG_MAX, Kind, Setting, declare
from ottla.settings.protocol_level import LEVELS, NEWEST, ProtocolLevel, level_named

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """Who leads, how a broker leaves, and how fast replicas are copied."""

    auto_leader_rebalance_enable: bool = declare(
        True,
        Setting("auto.leader.rebalance.enable", Kind.BOOLEAN),
        "Whether partitions go back to their preferred leaders by themselves.",
    )
    leader_imbalance_check_interval_seconds: int = declare(
        300,
        Setting("leader.imbalance.check.interval.seconds", Kind.LONG, at_least=1),
        "How often the controller looks whether leaders are where they are preferred.",
    )
    leader_imbalance_per_broker_percentage: int = declare(
        10,
        Setting("leader.imbalance.per.broker.percentage", Kind.INT, at_least=0, at_most=100),
        "How many of the partitions that prefer a broker may be led by others, in percent.",
    )
    controlled_shutdown_enable: bool = declare(
        True,
        Setting("controlled.shutdown.enable", Kind.BOOLEAN),
        "Whether a broker that stops has what it leads moved to others first.",
    )
    controlled_shutdown_max_retries: int = declare(
        3,
        Setting("controlled.shutdown.max.retries", Kind.INT, at_least=0),
        "How often a stopping broker asks again while it still leads something.",
    )
    controlled_shutdown_retry_backoff_ms: int = declare(
        5000,
        Setting("controlled.shutdown.retry.backoff.ms", Kind.LONG, at_least=0),
        "How long a stopping broker waits before it asks again.",
    )
    replica_selector_class: str | None = declare(
        None,
        Setting("replica.selector.class", Kind.STRING, one_of=(RACK_AWARE,)),
        "Lets consumers read from a replica in their own rack (client.rack) instead of the leader.",
    )
    leader_replication_throttled_rate: int = declare(
        LONG_MAX,
        Setting("leader.replication.throttled.rate", Kind.LONG, at_least=0, is_live=True),
        "The most bytes a second this broker sends to throttled replicas of what it leads.",
    )
    follower_replication_throttled_rate: int = declare(
        LONG_MAX,
        Setting("follower.replication.throttled.rate", Kind.LONG, at_least=0, is_live=True),
        "The most bytes a second this broker fetches for its own throttled replicas.",
    )

    inter_broker_protocol_version: str = declare(
        NEWEST.name,
        Setting(
            "inter.broker.protocol.version",
            Kind.STRING,
            one_of=tuple(level.name for level in LEVELS),
        ),
        "What brokers say to each other and write to their own topics; raised once all of them run"
        " a program that knows it, and never lowered.",
    )

    @property
    def protocol_level(self) -> ProtocolLevel:
        """What this broker speaks to others."""
        return level_named(self.inter_broker_protocol_version)

    @property
    def may_read_from_followers(self) -> bool:
        """Whether a consumer is sent to a replica in its own rack."""
        return self.replica_selector_class is not None
