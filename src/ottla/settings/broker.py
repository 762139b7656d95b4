"""The settings of a broker, under Kafka's names.

The `log.*` names that give topics their defaults are not declared again: they follow from the table
`TOPIC_DEFAULTS` and the topic's declarations, and their effect is `BrokerSettings.topic_defaults`.
Does not know files or the command line (see sources.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from ottla.errors import ConfigError
from ottla.settings.coordination import GroupSettings, TransactionSettings
from ottla.settings.declare import (
    DOUBLE_MAX,
    INT_MAX,
    MS_PER_HOUR,
    MS_PER_MINUTE,
    Declared,
    Kind,
    Setting,
    Value,
    by_name,
    declarations,
    declare,
    parsed,
    unknown,
)
from ottla.settings.listeners import (
    EVERY_INTERFACE,
    Endpoint,
    endpoint_objection,
    endpoints,
    protocol_map_objection,
    security_protocols,
)
from ottla.settings.replication import ReplicationSettings
from ottla.settings.topic import TopicSettings
from ottla.settings.unused import refusal, why_unused

NODE_ID: Final = "node.id"
ALIASES: Final[Mapping[str, str]] = {"broker.id": NODE_ID}
"""Older names of the same setting."""


@dataclass(frozen=True, slots=True)
class UnitName:
    """A broker setting that gives a topic's default, and what one of its units is worth there."""

    name: str
    unit: int = 1


TOPIC_DEFAULTS: Final[Mapping[str, tuple[UnitName, ...]]] = {
    "cleanup_policy": (UnitName("log.cleanup.policy"),),
    "compression_type": (UnitName("compression.type"),),
    "compression_gzip_level": (UnitName("compression.gzip.level"),),
    "compression_lz4_level": (UnitName("compression.lz4.level"),),
    "compression_zstd_level": (UnitName("compression.zstd.level"),),
    "delete_retention_ms": (UnitName("log.cleaner.delete.retention.ms"),),
    "file_delete_delay_ms": (UnitName("log.segment.delete.delay.ms"),),
    "flush_messages": (UnitName("log.flush.interval.messages"),),
    "flush_ms": (UnitName("log.flush.interval.ms"), UnitName("log.flush.scheduler.interval.ms")),
    "index_interval_bytes": (UnitName("log.index.interval.bytes"),),
    "local_retention_bytes": (UnitName("log.local.retention.bytes"),),
    "local_retention_ms": (UnitName("log.local.retention.ms"),),
    "max_compaction_lag_ms": (UnitName("log.cleaner.max.compaction.lag.ms"),),
    "max_message_bytes": (UnitName("message.max.bytes"),),
    "message_timestamp_after_max_ms": (UnitName("log.message.timestamp.after.max.ms"),),
    "message_timestamp_before_max_ms": (UnitName("log.message.timestamp.before.max.ms"),),
    "message_timestamp_type": (UnitName("log.message.timestamp.type"),),
    "min_cleanable_dirty_ratio": (UnitName("log.cleaner.min.cleanable.ratio"),),
    "min_compaction_lag_ms": (UnitName("log.cleaner.min.compaction.lag.ms"),),
    "min_insync_replicas": (UnitName("min.insync.replicas"),),
    "preallocate": (UnitName("log.preallocate"),),
    "records_check": (UnitName("log.records.check"),),
    "retention_bytes": (UnitName("log.retention.bytes"),),
    "retention_ms": (
        UnitName("log.retention.ms"),
        UnitName("log.retention.minutes", MS_PER_MINUTE),
        UnitName("log.retention.hours", MS_PER_HOUR),
    ),
    "segment_bytes": (UnitName("log.segment.bytes"),),
    "segment_index_bytes": (UnitName("log.index.size.max.bytes"),),
    "segment_jitter_ms": (
        UnitName("log.roll.jitter.ms"),
        UnitName("log.roll.jitter.hours", MS_PER_HOUR),
    ),
    "segment_ms": (UnitName("log.roll.ms"), UnitName("log.roll.hours", MS_PER_HOUR)),
    "unclean_leader_election_enable": (UnitName("unclean.leader.election.enable"),),
}
"""By the topic's attribute: the broker's names for its default, the first one given wins."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """All settings of one broker. An instance without arguments holds the defaults."""

    node_id: int = declare(
        1, Setting(NODE_ID, Kind.INT, at_least=0), "The number of this broker in its cluster."
    )
    broker_rack: str | None = declare(
        None, Setting("broker.rack", Kind.STRING), "The rack or zone this broker stands in."
    )
    listeners: tuple[str, ...] = declare(
        ("PLAINTEXT://localhost:9092",),
        Setting("listeners", Kind.LIST, check=endpoint_objection),
        "The addresses the broker listens on; an empty host means every interface.",
    )
    advertised_listeners: tuple[str, ...] = declare(
        (),
        Setting("advertised.listeners", Kind.LIST, check=endpoint_objection),
        "The addresses clients are told to connect to, where they differ from listeners.",
    )
    listener_security_protocol_map: str = declare(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        Setting("listener.security.protocol.map", Kind.STRING, check=protocol_map_objection),
        "The security protocol of each listener name.",
    )
    controller_listener_names: tuple[str, ...] = declare(
        (),
        Setting("controller.listener.names", Kind.LIST),
        "Listeners meant for Kafka's controller quorum; Ottla does not open them.",
    )
    metadata: str = declare(
        "",
        Setting("metadata", Kind.STRING),
        "Where a cluster keeps its metadata, as zookeeper://host:2181,host2:2181/chroot; a broker"
        " without it stands alone and keeps its own.",
    )
    zookeeper_connect: str = declare(
        "",
        Setting("zookeeper.connect", Kind.STRING),
        "The same by Kafka's name: host:2181,host2:2181/chroot.",
    )
    zookeeper_session_timeout_ms: int = declare(
        18_000,
        Setting("zookeeper.session.timeout.ms", Kind.INT, at_least=1),
        "A broker not heard of for so long is given up by its cluster.",
    )
    log_dir: tuple[str, ...] = declare(
        ("ottla-data",),
        Setting("log.dir", Kind.LIST),
        "The directory that holds the data, where log.dirs is not set.",
    )
    log_dirs: tuple[str, ...] = declare(
        (), Setting("log.dirs", Kind.LIST), "The directory that holds the data."
    )
    num_partitions: int = declare(
        1,
        Setting("num.partitions", Kind.INT, at_least=1),
        "Partitions of a topic created without saying how many.",
    )
    default_replication_factor: int = declare(
        1,
        Setting("default.replication.factor", Kind.INT, at_least=1),
        "Replicas of a topic created without saying how many.",
    )
    auto_create_topics_enable: bool = declare(
        True,
        Setting("auto.create.topics.enable", Kind.BOOLEAN),
        "Whether a client that asks for an unknown topic may bring it into being.",
    )
    delete_topic_enable: bool = declare(
        True, Setting("delete.topic.enable", Kind.BOOLEAN), "Whether topics may be deleted."
    )
    socket_request_max_bytes: int = declare(
        100 << 20,
        Setting("socket.request.max.bytes", Kind.INT, at_least=1),
        "The largest request; a connection that announces more is closed.",
    )
    socket_listen_backlog_size: int = declare(
        1024,
        Setting("socket.listen.backlog.size", Kind.INT, at_least=1),
        "Connections the system may hold until the broker accepts them.",
    )
    socket_receive_buffer_bytes: int = declare(
        -1,
        Setting("socket.receive.buffer.bytes", Kind.INT, at_least=1, or_exactly=-1),
        "The receive buffer of a socket; -1 leaves it to the system.",
    )
    socket_send_buffer_bytes: int = declare(
        -1,
        Setting("socket.send.buffer.bytes", Kind.INT, at_least=1, or_exactly=-1),
        "The send buffer of a socket; -1 leaves it to the system.",
    )
    max_connections: int = declare(
        INT_MAX,
        Setting("max.connections", Kind.INT, at_least=1, is_live=True),
        "The most connections at once; one more is closed at once.",
    )
    max_connections_per_ip: int = declare(
        INT_MAX,
        Setting("max.connections.per.ip", Kind.INT, at_least=0, is_live=True),
        "The most connections at once from one address.",
    )
    connections_max_idle_ms: int = declare(
        10 * MS_PER_MINUTE,
        Setting("connections.max.idle.ms", Kind.LONG, at_least=1, or_exactly=-1),
        "A connection silent for so long is closed; -1 never closes one.",
    )
    queued_max_requests: int = declare(
        500,
        Setting("queued.max.requests", Kind.INT, at_least=1),
        "Requests of one connection being answered at once; beyond that its socket is not read.",
    )
    queued_max_request_bytes: int = declare(
        128 << 20,
        Setting("queued.max.request.bytes", Kind.LONG, at_least=1, or_exactly=-1),
        "Bytes of requests being answered at once, after which no socket is read; -1 is no limit.",
    )
    fetch_max_bytes: int = declare(
        55 << 20,
        Setting("fetch.max.bytes", Kind.INT, at_least=1024),
        "The most bytes of records one fetch is answered with, whatever the client asks for.",
    )
    max_incremental_fetch_session_cache_slots: int = declare(
        1000,
        Setting("max.incremental.fetch.session.cache.slots", Kind.INT, at_least=0),
        "The most fetch sessions remembered at once.",
    )
    max_request_partition_size_limit: int = declare(
        2000,
        Setting("max.request.partition.size.limit", Kind.INT, at_least=1),
        "The most partitions one DescribeTopicPartitions is answered with.",
    )
    log_retention_check_interval_ms: int = declare(
        5 * MS_PER_MINUTE,
        Setting("log.retention.check.interval.ms", Kind.LONG, at_least=1),
        "How often segments past their retention are looked for.",
    )
    log_flush_offset_checkpoint_interval_ms: int = declare(
        MS_PER_MINUTE,
        Setting("log.flush.offset.checkpoint.interval.ms", Kind.INT, at_least=0),
        "How often the point is written from which recovery has to look.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = declare(
        MS_PER_MINUTE,
        Setting("log.flush.start.offset.checkpoint.interval.ms", Kind.INT, at_least=0),
        "How often the start offsets of the logs are written.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = declare(
        5000,
        Setting("replica.high.watermark.checkpoint.interval.ms", Kind.LONG, at_least=1),
        "How often the high watermarks are written.",
    )
    replica_lag_time_max_ms: int = declare(
        30_000,
        Setting("replica.lag.time.max.ms", Kind.LONG, at_least=1),
        "A replica that has not had everything for so long is not in sync any more.",
    )
    log_cleaner_enable: bool = declare(
        True, Setting("log.cleaner.enable", Kind.BOOLEAN), "Whether logs are compacted at all."
    )
    log_cleaner_backoff_ms: int = declare(
        15_000,
        Setting("log.cleaner.backoff.ms", Kind.LONG, at_least=0, is_live=True),
        "How long compaction sleeps when there is nothing to do.",
    )
    log_cleaner_dedupe_buffer_size: int = declare(
        128 << 20,
        Setting("log.cleaner.dedupe.buffer.size", Kind.LONG, at_least=1 << 20, is_live=True),
        "The most memory compaction takes to remember keys.",
    )
    log_cleaner_io_max_bytes_per_second: float = declare(
        DOUBLE_MAX,
        Setting("log.cleaner.io.max.bytes.per.second", Kind.DOUBLE, at_least=1, is_live=True),
        "The most compaction reads and writes in a second.",
    )
    producer_id_expiration_ms: int = declare(
        24 * MS_PER_HOUR,
        Setting("producer.id.expiration.ms", Kind.INT, at_least=1, is_live=True),
        "How long an idempotent producer is remembered after its last record.",
    )
    producer_id_expiration_check_interval_ms: int = declare(
        10 * MS_PER_MINUTE,
        Setting("producer.id.expiration.check.interval.ms", Kind.INT, at_least=1),
        "How often forgotten producers are looked for.",
    )
    topic_defaults: TopicSettings = field(default_factory=TopicSettings)
    groups: GroupSettings = field(default_factory=GroupSettings)
    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    replication: ReplicationSettings = field(default_factory=ReplicationSettings)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> BrokerSettings:
        """The settings that texts under Kafka's names stand for; ConfigError says what is wrong."""
        known = broker_declarations()
        used = _used(texts, known)
        own = parsed(known, _only(used, _OWN), scope="broker")
        values: dict[str, Any] = {
            **own,
            "topic_defaults": _topic_defaults(used),
            "groups": _part(GroupSettings(), used),
            "transactions": _part(TransactionSettings(), used),
            "replication": _part(ReplicationSettings(), used),
        }
        return cls(**values).checked()

    def checked(self) -> BrokerSettings:
        """Itself, where the settings agree with each other; ConfigError where not."""
        self.endpoints()
        self.advertised_endpoints()
        groups = self.groups
        if groups.group_min_session_timeout_ms > groups.group_max_session_timeout_ms:
            raise ConfigError(
                "group.min.session.timeout.ms",
                "is larger than group.max.session.timeout.ms",
                "make it smaller or equal",
            )
        return self

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses to listen on."""
        found = self._endpoints(self.listeners, "listeners")
        if not found:
            raise ConfigError("listeners", "no listener is left to open", "name at least one")
        return found

    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses told to clients; those listened on where no others are set.

        An empty host or port 0 among the latter is for the broker to fill in once it listens.
        """
        if not self.advertised_listeners:
            return self.endpoints()
        found = self._endpoints(self.advertised_listeners, "advertised.listeners")
        opened = {endpoint.listener for endpoint in self.endpoints()}
        for endpoint in found:
            if endpoint.listener not in opened:
                raise ConfigError(
                    "advertised.listeners",
                    f"{endpoint} names a listener that listeners does not open",
                    f"use one of {', '.join(sorted(opened))}",
                )
            if endpoint.host in EVERY_INTERFACE:
                raise ConfigError(
                    "advertised.listeners",
                    f"{endpoint} is an address nobody can connect to",
                    "write the name or address by which clients reach this machine",
                )
        return found

    def data_directories(self) -> tuple[str, ...]:
        """Where the data lies: log.dirs, or else log.dir."""
        return self.log_dirs or self.log_dir

    def _endpoints(self, texts: tuple[str, ...], setting: str) -> tuple[Endpoint, ...]:
        return endpoints(
            texts,
            setting=setting,
            protocols=security_protocols(self.listener_security_protocol_map),
            leave_out=self.controller_listener_names,
        )


def merged(*layers: Mapping[str, str]) -> dict[str, str]:
    """Texts from several places under their present names; a later place wins over an earlier."""
    return {ALIASES.get(name, name): text for layer in layers for name, text in layer.items()}


@cache
def broker_declarations() -> Mapping[str, Declared]:
    """Every broker setting by Kafka's name, those that give topics their defaults among them."""
    own = by_name(declarations(BrokerSettings))
    parts = (
        *declarations(GroupSettings),
        *declarations(TransactionSettings),
        *declarations(ReplicationSettings),
    )
    return dict(sorted({**own, **by_name(parts), **_topic_default_declarations()}.items()))


def _topic_default_declarations() -> dict[str, Declared]:
    """The last of several names carries the default; the ones before it begin unset."""
    topic = {declared.attribute: declared for declared in declarations(TopicSettings)}
    found: dict[str, Declared] = {}
    for attribute, names in TOPIC_DEFAULTS.items():
        declared = topic[attribute]
        for place, each in enumerate(names):
            kind = declared.setting.kind if each.unit == 1 else Kind.INT
            # Kafka lets only the name of the smallest unit change while the broker runs.
            setting = replace(declared.setting, name=each.name, kind=kind, is_live=place == 0)
            default: Value = None
            if place == len(names) - 1:
                default = declared.default
                if each.unit > 1:
                    assert isinstance(default, int)
                    default //= each.unit
            found[each.name] = Declared(setting, attribute, default, declared.doc)
    return found


def _used(texts: Mapping[str, str], known: Mapping[str, Declared]) -> dict[str, str]:
    """The texts that mean something here; ConfigError for a name nobody knows."""
    used: dict[str, str] = {}
    for given, text in texts.items():
        name = ALIASES.get(given, given)
        if name in known:
            if used.get(name, text) != text:
                raise ConfigError(given, f"{text!r} contradicts {name}={used[name]}", "give one")
            used[name] = text
        elif (reason := refusal(name)) is not None:
            raise ConfigError(name, reason, "remove it")
        elif why_unused(name) is None:
            raise unknown(name, [*known, *ALIASES], scope="broker")
    return used


def _only(texts: Mapping[str, str], names: Mapping[str, Declared]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if name in names}


def _part(defaults: Any, texts: Mapping[str, str]) -> Any:
    names = by_name(declarations(type(defaults)))
    return replace(defaults, **parsed(names, _only(texts, names), scope="broker"))


def _topic_defaults(texts: Mapping[str, str]) -> TopicSettings:
    known = broker_declarations()
    values: dict[str, Any] = {}
    for attribute, names in TOPIC_DEFAULTS.items():
        for each in reversed(names):
            if each.name in texts:
                value: Any = known[each.name].parse(texts[each.name])
                values[attribute] = value if each.unit == 1 or value < 0 else value * each.unit
    return replace(TopicSettings(), **values).checked()


_OWN: Final = by_name(declarations(BrokerSettings))
