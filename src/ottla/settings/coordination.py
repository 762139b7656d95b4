"""The broker's settings for groups, committed offsets and transactions, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.settings.declare import INT_MAX, MS_PER_MINUTE, Kind, Setting, declare

_DAY_MS: Final = 24 * 60 * MS_PER_MINUTE


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How groups form, how long their members may be silent and how long offsets are kept."""

    offset_metadata_max_bytes: int = declare(
        4096,
        Setting("offset.metadata.max.bytes", Kind.INT, at_least=0),
        "The largest note a consumer may store beside a committed offset.",
    )
    offsets_commit_timeout_ms: int = declare(
        5000,
        Setting("offsets.commit.timeout.ms", Kind.INT, at_least=1),
        "How long a commit waits for its replicas before it is answered with an error.",
    )
    offsets_retention_minutes: int = declare(
        10080,
        Setting("offsets.retention.minutes", Kind.INT, at_least=1),
        "How long the offsets of a group without members are kept.",
    )
    offsets_retention_check_interval_ms: int = declare(
        10 * MS_PER_MINUTE,
        Setting("offsets.retention.check.interval.ms", Kind.LONG, at_least=1),
        "How often expired offsets are looked for.",
    )
    offsets_topic_num_partitions: int = declare(
        50,
        Setting("offsets.topic.num.partitions", Kind.INT, at_least=1),
        "Partitions of the topic that keeps groups and offsets; fixed once it exists.",
    )
    offsets_topic_replication_factor: int = declare(
        3,
        Setting("offsets.topic.replication.factor", Kind.SHORT, at_least=1),
        "Replicas of the topic that keeps groups and offsets; one where a broker stands alone.",
    )
    offsets_topic_segment_bytes: int = declare(
        100 << 20,
        Setting("offsets.topic.segment.bytes", Kind.INT, at_least=1 << 20),
        "The segment size of the topic that keeps groups and offsets.",
    )
    group_initial_rebalance_delay_ms: int = declare(
        3000,
        Setting("group.initial.rebalance.delay.ms", Kind.INT, at_least=0),
        "How long a new group waits for more members before its first assignment.",
    )
    group_min_session_timeout_ms: int = declare(
        6000,
        Setting("group.min.session.timeout.ms", Kind.INT, at_least=1),
        "The shortest session timeout a member may ask for.",
    )
    group_max_session_timeout_ms: int = declare(
        30 * MS_PER_MINUTE,
        Setting("group.max.session.timeout.ms", Kind.INT, at_least=1),
        "The longest session timeout a member may ask for.",
    )
    group_max_size: int = declare(
        INT_MAX,
        Setting("group.max.size", Kind.INT, at_least=1),
        "The most members a classic group may have.",
    )
    group_consumer_assignors: tuple[str, ...] = declare(
        ("uniform", "range"),
        Setting("group.consumer.assignors", Kind.LIST, one_of=("uniform", "range")),
        "The assignors the broker offers to groups of the consumer protocol, the default first.",
    )
    group_consumer_heartbeat_interval_ms: int = declare(
        5000,
        Setting("group.consumer.heartbeat.interval.ms", Kind.INT, at_least=1),
        "How often members of the consumer protocol are told to send a heartbeat.",
    )
    group_consumer_session_timeout_ms: int = declare(
        45_000,
        Setting("group.consumer.session.timeout.ms", Kind.INT, at_least=1),
        "How long a member of the consumer protocol may be silent before it is removed.",
    )
    group_consumer_max_size: int = declare(
        INT_MAX,
        Setting("group.consumer.max.size", Kind.INT, at_least=1),
        "The most members a group of the consumer protocol may have.",
    )
    group_consumer_migration_policy: str = declare(
        "bidirectional",
        Setting(
            "group.consumer.migration.policy",
            Kind.STRING,
            one_of=("disabled", "downgrade", "upgrade", "bidirectional"),
        ),
        "Which way a group may move between the classic and the consumer protocol.",
    )


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """How long transactions may take and how their state is kept."""

    transaction_max_timeout_ms: int = declare(
        15 * MS_PER_MINUTE,
        Setting("transaction.max.timeout.ms", Kind.INT, at_least=1),
        "The longest transaction timeout a producer may ask for.",
    )
    transaction_abort_interval_ms: int = declare(
        10_000,
        Setting(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", Kind.INT, at_least=1
        ),
        "How often transactions past their timeout are looked for.",
    )
    transaction_expiry_interval_ms: int = declare(
        60 * MS_PER_MINUTE,
        Setting("transaction.remove.expired.transaction.cleanup.interval.ms", Kind.INT, at_least=1),
        "How often expired transactional ids are looked for.",
    )
    transactional_id_expiration_ms: int = declare(
        7 * _DAY_MS,
        Setting("transactional.id.expiration.ms", Kind.INT, at_least=1),
        "How long a transactional id is remembered without use.",
    )
    transaction_partition_verification_enable: bool = declare(
        True,
        Setting("transaction.partition.verification.enable", Kind.BOOLEAN, is_live=True),
        "Whether a partition asks the coordinator before it takes a producer's first record.",
    )
    transaction_two_phase_commit_enable: bool = declare(
        False,
        Setting("transaction.two.phase.commit.enable", Kind.BOOLEAN),
        "Whether a transaction may stay prepared until its owner decides.",
    )
    transaction_state_log_num_partitions: int = declare(
        50,
        Setting("transaction.state.log.num.partitions", Kind.INT, at_least=1),
        "Partitions of the topic that keeps transactions; fixed once it exists.",
    )
    transaction_state_log_replication_factor: int = declare(
        3,
        Setting("transaction.state.log.replication.factor", Kind.SHORT, at_least=1),
        "Replicas of the topic that keeps transactions; one where a broker stands alone.",
    )
    transaction_state_log_min_isr: int = declare(
        2,
        Setting("transaction.state.log.min.isr", Kind.INT, at_least=1),
        "Replicas that must have a change of a transaction; no more than there are.",
    )
    transaction_state_log_segment_bytes: int = declare(
        100 << 20,
        Setting("transaction.state.log.segment.bytes", Kind.INT, at_least=1 << 20),
        "The segment size of the topic that keeps transactions.",
    )
