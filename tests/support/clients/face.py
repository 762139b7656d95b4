"""What a test asks of a client library: create, produce, consume, look up offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from support.batches import Header

CREATE_TIME, LOG_APPEND_TIME = 0, 1


@dataclass(frozen=True, slots=True)
class ToSend:
    """A record to produce."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """A record as the client handed it out."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int
    timestamp_type: int


@dataclass(frozen=True, slots=True)
class Sending:
    """How to produce."""

    codec: str | None = None
    acks: int = -1
    idempotent: bool = False
    linger_ms: int = 5
    request_bytes_max: int = 1 << 20


PLAINLY = Sending()


@dataclass(frozen=True, slots=True)
class Reading:
    """How to consume."""

    count: int
    fetch_bytes_max: int = 50 << 20
    partition_bytes_max: int = 1 << 20
    wait_ms_max: int = 500


class Client(Protocol):
    """A client library under test."""

    name: str
    codecs: tuple[str, ...]
    sends_null_headers: bool

    def create_topic(
        self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic and wait until it can be written."""

    def produce(self, topic: str, records: Sequence[ToSend], how: Sending = PLAINLY) -> list[int]:
        """Send everything, flush, and return the offsets in the order given (-1 where unknown)."""

    def consume(self, topic: str, starts: Mapping[int, int], how: Reading) -> list[Received]:
        """Read `how.count` records from the given offsets of partitions."""

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset at or after a timestamp; None where there is none."""

    def offset_range(self, topic: str, partition: int) -> tuple[int, int]:
        """[earliest, latest)."""
