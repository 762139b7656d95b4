"""The settings of a topic, under Kafka's names. The broker's own settings give the defaults.

Does not know where overrides are kept, nor when a changed setting takes effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ottla.errors import ConfigError
from ottla.settings.declare import (
    LONG_MAX,
    MS_PER_HOUR,
    MS_PER_MINUTE,
    Declared,
    Kind,
    Setting,
    by_name,
    declarations,
    declare,
    parsed,
)

if TYPE_CHECKING:
    from ottla.settings.broker import BrokerSettings

DELETE: Final = "delete"
COMPACT: Final = "compact"
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
CHECK_AUTO: Final = "auto"
CHECK_NONE: Final = "none"
CHECK_UNCOMPRESSED: Final = "uncompressed"
CHECK_ALL: Final = "all"
CHECKS: Final = (CHECK_AUTO, CHECK_NONE, CHECK_UNCOMPRESSED, CHECK_ALL)
COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

_THROTTLED: Final = re.compile(r"\*|[0-9]+:[0-9]+")


def _throttled_replica(entry: str) -> str | None:
    if _THROTTLED.fullmatch(entry):
        return None
    return f"{entry!r} is neither * nor partition:broker"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """All settings of one topic. An instance without arguments holds Kafka's defaults."""

    cleanup_policy: frozenset[str] = declare(
        frozenset({DELETE}),
        Setting("cleanup.policy", Kind.LIST, one_of=(COMPACT, DELETE)),
        "What happens to old segments: delete them by age and size, compact them to the latest"
        " value of each key, both, or (empty) neither.",
    )
    compression_type: str = declare(
        "producer",
        Setting("compression.type", Kind.STRING, one_of=COMPRESSION_TYPES),
        "The codec batches are stored with; producer keeps what the producer sent.",
    )
    compression_gzip_level: int = declare(
        -1,
        Setting("compression.gzip.level", Kind.INT, at_least=1, at_most=9, or_exactly=-1),
        "The level where compression.type is gzip; -1 is the codec's own.",
    )
    compression_lz4_level: int = declare(
        9,
        Setting("compression.lz4.level", Kind.INT, at_least=1, at_most=17),
        "The level where compression.type is lz4.",
    )
    compression_zstd_level: int = declare(
        3,
        Setting("compression.zstd.level", Kind.INT, at_least=-131072, at_most=22),
        "The level where compression.type is zstd.",
    )
    delete_retention_ms: int = declare(
        24 * MS_PER_HOUR,
        Setting("delete.retention.ms", Kind.LONG, at_least=0),
        "How long a tombstone stays readable in a compacted topic.",
    )
    file_delete_delay_ms: int = declare(
        MS_PER_MINUTE,
        Setting("file.delete.delay.ms", Kind.LONG, at_least=0),
        "How long the file of a deleted segment stays on disk for readers that still hold it.",
    )
    flush_messages: int = declare(
        LONG_MAX,
        Setting("flush.messages", Kind.LONG, at_least=1),
        "Force the log to disk after this many records; 1 makes an acknowledged"
        " record survive a power cut.",
    )
    flush_ms: int = declare(
        LONG_MAX,
        Setting("flush.ms", Kind.LONG, at_least=0),
        "Force the log to disk when its oldest unflushed record is this old.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = declare(
        (),
        Setting("follower.replication.throttled.replicas", Kind.LIST, check=_throttled_replica),
        "Replicas (partition:broker, or *) whose fetching from their leader is throttled.",
    )
    index_interval_bytes: int = declare(
        4096,
        Setting("index.interval.bytes", Kind.INT, at_least=0),
        "About how many bytes of log stand between two entries of the offset index.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = declare(
        (),
        Setting("leader.replication.throttled.replicas", Kind.LIST, check=_throttled_replica),
        "Replicas (partition:broker, or *) whose leader throttles what it sends to followers.",
    )
    local_retention_bytes: int = declare(
        -2,
        Setting("local.retention.bytes", Kind.LONG, is_fixed=True),
        "Size kept on local disk under tiered storage, which Ottla does not have.",
    )
    local_retention_ms: int = declare(
        -2,
        Setting("local.retention.ms", Kind.LONG, is_fixed=True),
        "Time kept on local disk under tiered storage, which Ottla does not have.",
    )
    max_compaction_lag_ms: int = declare(
        LONG_MAX,
        Setting("max.compaction.lag.ms", Kind.LONG, at_least=1),
        "A record is compacted at the latest when it is this old.",
    )
    max_message_bytes: int = declare(
        (1 << 20) + 12,
        Setting("max.message.bytes", Kind.INT, at_least=0),
        "The largest record batch that is accepted, as compressed by the producer.",
    )
    message_timestamp_after_max_ms: int = declare(
        MS_PER_HOUR,
        Setting("message.timestamp.after.max.ms", Kind.LONG, at_least=0),
        "How far a record's timestamp may lie in the future (CreateTime only).",
    )
    message_timestamp_before_max_ms: int = declare(
        LONG_MAX,
        Setting("message.timestamp.before.max.ms", Kind.LONG, at_least=0),
        "How far a record's timestamp may lie in the past (CreateTime only).",
    )
    message_timestamp_type: str = declare(
        CREATE_TIME,
        Setting("message.timestamp.type", Kind.STRING, one_of=(CREATE_TIME, LOG_APPEND_TIME)),
        "Whether a record keeps its producer's time or gets the time of its append.",
    )
    min_cleanable_dirty_ratio: float = declare(
        0.5,
        Setting("min.cleanable.dirty.ratio", Kind.DOUBLE, at_least=0, at_most=1),
        "The part of the log not yet compacted at which compaction begins.",
    )
    min_compaction_lag_ms: int = declare(
        0,
        Setting("min.compaction.lag.ms", Kind.LONG, at_least=0),
        "A record younger than this is never compacted away.",
    )
    min_insync_replicas: int = declare(
        1,
        Setting("min.insync.replicas", Kind.INT, at_least=1),
        "A producer with acks=all is refused when fewer replicas than this are in sync.",
    )
    preallocate: bool = declare(
        False,
        Setting("preallocate", Kind.BOOLEAN),
        "Reserve a new segment's whole size on disk when it is created.",
    )
    records_check: str = declare(
        CHECK_AUTO,
        Setting("records.check", Kind.STRING, one_of=CHECKS),
        "Which batches of producers are walked over record by record before they are taken: all,"
        " uncompressed ones, or none beyond header and codec; auto is uncompressed where Ottla was"
        " installed with a C compiler, else none.",
    )
    remote_log_copy_disable: bool = declare(
        False,
        Setting("remote.log.copy.disable", Kind.BOOLEAN, is_fixed=True),
        "Part of tiered storage, which Ottla does not have.",
    )
    remote_log_delete_on_disable: bool = declare(
        False,
        Setting("remote.log.delete.on.disable", Kind.BOOLEAN, is_fixed=True),
        "Part of tiered storage, which Ottla does not have.",
    )
    remote_storage_enable: bool = declare(
        False,
        Setting("remote.storage.enable", Kind.BOOLEAN, is_fixed=True),
        "Part of tiered storage, which Ottla does not have.",
    )
    retention_bytes: int = declare(
        -1,
        Setting("retention.bytes", Kind.LONG),
        "How large a partition may grow before its oldest segments are deleted; -1 is no limit.",
    )
    retention_ms: int = declare(
        168 * MS_PER_HOUR,
        Setting("retention.ms", Kind.LONG, at_least=-1),
        "How long records are kept before their segment is deleted; -1 is for ever.",
    )
    segment_bytes: int = declare(
        1 << 30,
        Setting("segment.bytes", Kind.INT, at_least=1 << 20),
        "The size at which a segment is closed and a new one begun.",
    )
    segment_index_bytes: int = declare(
        10 << 20,
        Setting("segment.index.bytes", Kind.INT, at_least=4),
        "The largest size of a segment's offset index; a full index closes the segment.",
    )
    segment_jitter_ms: int = declare(
        0,
        Setting("segment.jitter.ms", Kind.LONG, at_least=0),
        "The most that is taken from segment.ms at random, so that not all segments roll at once.",
    )
    segment_ms: int = declare(
        168 * MS_PER_HOUR,
        Setting("segment.ms", Kind.LONG, at_least=1),
        "The age at which a segment is closed even if it is not full.",
    )
    unclean_leader_election_enable: bool = declare(
        False,
        Setting("unclean.leader.election.enable", Kind.BOOLEAN),
        "Whether a replica out of sync may lead when no other is left, though records are lost.",
    )

    @classmethod
    def from_overrides(cls, overrides: Mapping[str, str], broker: BrokerSettings) -> TopicSettings:
        """A topic's settings: the broker's defaults under the topic's own texts."""
        return broker.topic_defaults.with_overrides(overrides)

    def with_overrides(self, overrides: Mapping[str, str]) -> TopicSettings:
        """These settings with some of them replaced by texts under Kafka's names."""
        if not overrides:
            return self
        values: dict[str, Any] = {**parsed(topic_declarations(), overrides, scope="topic")}
        return replace(self, **values).checked()

    def checked(self) -> TopicSettings:
        """Itself, where the settings agree with each other; ConfigError where not."""
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                "min.compaction.lag.ms",
                f"{self.min_compaction_lag_ms} is larger than max.compaction.lag.ms"
                f" ({self.max_compaction_lag_ms})",
                "make it smaller or equal",
            )
        return self

    @property
    def is_compacted(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted_by_retention(self) -> bool:
        return DELETE in self.cleanup_policy


@cache
def topic_declarations() -> Mapping[str, Declared]:
    """Every topic setting by Kafka's name. All of them may change while the broker runs."""
    return by_name(declarations(TopicSettings))
