"""The settings of a producer, declared once under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ottla.errors import ConfigError
from ottla.records.compression import Compression
from ottla.settings.declare import INT_MAX, LONG_MAX, Kind, Setting, declare

ACKS_ALL: Final = -1
ACKS_NONE: Final = 0
IN_FLIGHT_IDEMPOTENT_MAX: Final = 5
"""A broker remembers so many batches of a producer in a partition, and recognises no more."""


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How records are gathered into batches, sent, and repeated."""

    acks: str = declare(
        "all",
        Setting("acks", Kind.STRING, one_of=("all", "-1", "0", "1")),
        "Who must have a record before it counts as written: 0 nobody, 1 the leader, all in-sync.",
    )
    batch_size: int = declare(
        512 * 1024,
        Setting("batch.size", Kind.INT, at_least=0),
        "How many bytes of one partition travel together at most.",
    )
    linger_ms: int = declare(
        5,
        Setting("linger.ms", Kind.LONG, at_least=0, at_most=INT_MAX),
        "How long a batch that is not full waits for more records.",
    )
    buffer_memory: int = declare(
        32 * 1024 * 1024,
        Setting("buffer.memory", Kind.LONG, at_least=1, at_most=LONG_MAX),
        "How many bytes may wait to be sent; beyond that, send waits.",
    )
    max_block_ms: int = declare(
        60_000,
        Setting("max.block.ms", Kind.LONG, at_least=0, at_most=LONG_MAX),
        "How long send waits for memory or for the topic to be known.",
    )
    max_request_size: int = declare(
        1024 * 1024,
        Setting("max.request.size", Kind.INT, at_least=0),
        "The largest record, and about the largest request.",
    )
    max_in_flight_requests_per_connection: int = declare(
        5,
        Setting("max.in.flight.requests.per.connection", Kind.INT, at_least=1),
        "How many requests may wait for one broker's answer.",
    )
    retries: int = declare(
        INT_MAX,
        Setting("retries", Kind.INT, at_least=0),
        "How often a batch is sent again; delivery.timeout.ms is the better limit.",
    )
    delivery_timeout_ms: int = declare(
        120_000,
        Setting("delivery.timeout.ms", Kind.INT, at_least=0),
        "How long after send a record may still be on its way before it is given up.",
    )
    compression_type: str = declare(
        "none",
        Setting("compression.type", Kind.STRING, one_of=("none", "gzip", "snappy", "lz4", "zstd")),
        "The codec of batches.",
    )
    compression_gzip_level: int = declare(
        -1,
        Setting("compression.gzip.level", Kind.INT, at_least=1, at_most=9, or_exactly=-1),
        "How hard gzip tries.",
    )
    compression_lz4_level: int = declare(
        9,
        Setting("compression.lz4.level", Kind.INT, at_least=1, at_most=17),
        "How hard lz4 tries.",
    )
    compression_zstd_level: int = declare(
        3,
        Setting("compression.zstd.level", Kind.INT, at_least=-131072, at_most=22),
        "How hard zstd tries.",
    )
    enable_idempotence: bool = declare(
        True,
        Setting("enable.idempotence", Kind.BOOLEAN),
        "Whether a batch that is sent twice is stored once.",
    )
    transactional_id: str = declare(
        "",
        Setting("transactional.id", Kind.STRING),
        "The name under which this producer's transactions continue over restarts.",
    )
    transaction_timeout_ms: int = declare(
        60_000,
        Setting("transaction.timeout.ms", Kind.INT, at_least=1),
        "How long a transaction may stay open before the broker aborts it.",
    )
    partitioner_ignore_keys: bool = declare(
        False,
        Setting("partitioner.ignore.keys", Kind.BOOLEAN),
        "Whether records with a key are spread like those without one.",
    )

    @property
    def acks_number(self) -> int:
        """As the wire has it."""
        return ACKS_ALL if self.acks == "all" else int(self.acks)

    @property
    def compression(self) -> Compression:
        """The codec."""
        return Compression[self.compression_type.upper()]

    @property
    def compression_level(self) -> int | None:
        """How hard the codec tries; None for its own default."""
        match self.compression:
            case Compression.GZIP:
                return None if self.compression_gzip_level < 0 else self.compression_gzip_level
            case Compression.LZ4:
                return self.compression_lz4_level
            case Compression.ZSTD:
                return self.compression_zstd_level
            case _:
                return None

    @property
    def partition_in_flight_max(self) -> int:
        """How many batches of one partition may be on their way without risk to their order."""
        if not self.enable_idempotence:
            return 1
        return min(self.max_in_flight_requests_per_connection, IN_FLIGHT_IDEMPOTENT_MAX)


def check_together(settings: ProducerSettings, *, idempotence_was_asked: bool) -> ProducerSettings:
    """The settings where they go together; without idempotence where acks leaves no room for it."""
    if settings.transactional_id and not settings.enable_idempotence:
        raise ConfigError(
            "enable.idempotence", "is off, and transactions need it", "leave it out, or on"
        )
    if settings.acks_number == ACKS_ALL or not settings.enable_idempotence:
        return settings
    if idempotence_was_asked or settings.transactional_id:
        raise ConfigError("acks", f"{settings.acks} leaves idempotence no ground", "use acks=all")
    return replace(settings, enable_idempotence=False)
