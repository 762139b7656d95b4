"""The settings of a consumer, declared once under Kafka's names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ottla.errors import ConfigError
from ottla.settings.declare import INT_MAX, Kind, Setting, declare

TABLE_FETCH_BYTES: Final = 4 * 1024 * 1024
"""What a reader of tables asks for at once, of each partition, unless it is told what to ask for:
more than a reader of records, because each answer costs as much as a great many of a table's rows.
"""
ASSIGNOR_NAMES: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
_JAVA_ASSIGNORS: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)


def _reset_objection(text: str) -> str | None:
    if text in ("earliest", "latest", "none") or _DURATION.fullmatch(text):
        return None
    return "it is none of earliest, latest, none and by_duration:PnDTnHnMnS"


def _assignor_objection(text: str) -> str | None:
    return None if text in ASSIGNOR_NAMES or text in _JAVA_ASSIGNORS else f"there is no {text!r}"


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """How records are fetched, and how a member behaves in its group."""

    group_id: str = declare(
        "", Setting("group.id", Kind.STRING), "The group whose members share the partitions."
    )
    group_instance_id: str = declare(
        "",
        Setting("group.instance.id", Kind.STRING),
        "A name that survives restarts: the member keeps its partitions over them.",
    )
    group_protocol: str = declare(
        "classic",
        Setting("group.protocol", Kind.STRING, one_of=("classic", "consumer")),
        "classic: members assign among themselves; consumer: the broker does (KIP-848).",
    )
    group_remote_assignor: str = declare(
        "", Setting("group.remote.assignor", Kind.STRING), "The broker's assignor to use."
    )
    partition_assignment_strategy: tuple[str, ...] = declare(
        ("range", "cooperative-sticky"),
        Setting("partition.assignment.strategy", Kind.LIST, check=_assignor_objection),
        "Assignors of the classic protocol by preference.",
    )
    session_timeout_ms: int = declare(
        45_000,
        Setting("session.timeout.ms", Kind.INT, at_least=1),
        "A member not heard of for so long is taken for dead.",
    )
    heartbeat_interval_ms: int = declare(
        3_000,
        Setting("heartbeat.interval.ms", Kind.INT, at_least=1),
        "How often a member says that it is alive.",
    )
    max_poll_interval_ms: int = declare(
        300_000,
        Setting("max.poll.interval.ms", Kind.INT, at_least=1),
        "A member that does not poll for so long leaves its group.",
    )
    max_poll_records: int = declare(
        500,
        Setting("max.poll.records", Kind.INT, at_least=1),
        "How many records one poll returns at most.",
    )
    auto_offset_reset: str = declare(
        "latest",
        Setting("auto.offset.reset", Kind.STRING, check=_reset_objection),
        "Where to begin without a committed offset: earliest, latest, none or by_duration:PT1H.",
    )
    enable_auto_commit: bool = declare(
        True,
        Setting("enable.auto.commit", Kind.BOOLEAN),
        "Whether positions are committed by themselves, in poll and at the end.",
    )
    auto_commit_interval_ms: int = declare(
        5_000,
        Setting("auto.commit.interval.ms", Kind.INT, at_least=0),
        "How often that happens.",
    )
    isolation_level: str = declare(
        "read_uncommitted",
        Setting("isolation.level", Kind.STRING, one_of=("read_uncommitted", "read_committed")),
        "Whether records of open and aborted transactions are read.",
    )
    fetch_min_bytes: int = declare(
        1, Setting("fetch.min.bytes", Kind.INT, at_least=0), "What a broker waits for."
    )
    fetch_max_bytes: int = declare(
        50 * 1024 * 1024,
        Setting("fetch.max.bytes", Kind.INT, at_least=0),
        "The most one answer holds, and about the most that is fetched ahead in all.",
    )
    fetch_max_wait_ms: int = declare(
        500, Setting("fetch.max.wait.ms", Kind.INT, at_least=0), "How long a broker waits for it."
    )
    max_partition_fetch_bytes: int = declare(
        1024 * 1024,
        Setting("max.partition.fetch.bytes", Kind.INT, at_least=0),
        "The most one partition has in one answer; a larger batch comes alone.",
    )
    check_crcs: bool = declare(
        True, Setting("check.crcs", Kind.BOOLEAN), "Whether checksums of batches are checked."
    )
    allow_auto_create_topics: bool = declare(
        True,
        Setting("allow.auto.create.topics", Kind.BOOLEAN),
        "Whether the broker may create a topic because it is subscribed to.",
    )
    exclude_internal_topics: bool = declare(
        True,
        Setting("exclude.internal.topics", Kind.BOOLEAN),
        "Whether a pattern passes over the broker's own topics.",
    )
    default_api_timeout_ms: int = declare(
        60_000,
        Setting("default.api.timeout.ms", Kind.INT, at_least=0, at_most=INT_MAX),
        "How long a call may take that waits for brokers.",
    )

    @property
    def committed_only(self) -> bool:
        """Whether only committed records are read."""
        return self.isolation_level == "read_committed"

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignors by the names that travel."""
        given = self.partition_assignment_strategy
        return tuple(dict.fromkeys(_JAVA_ASSIGNORS.get(name, name) for name in given))


def reset_duration_ms(policy: str) -> int | None:
    """How far back `by_duration:…` begins; None for the other policies."""
    match = _DURATION.fullmatch(policy)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def check_consumer(settings: ConsumerSettings, *, auto_commit_was_asked: bool) -> None:
    """Refuses settings that do not go together."""
    if settings.enable_auto_commit and auto_commit_was_asked and not settings.group_id:
        raise ConfigError("enable.auto.commit", "needs a group", "give a group_id")
    if settings.group_id and settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise ConfigError(
            "heartbeat.interval.ms", "is not below session.timeout.ms", "use a third of it"
        )
