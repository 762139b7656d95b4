"""Records on their way in and out of a task, as bytes; and as a user's processor sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class InputRecord(NamedTuple):
    """A record of one of a task's partitions."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    offset: int = 0
    headers: Headers = ()


class OutputRecord(NamedTuple):
    """A record to write. Without a partition, `partition_key` decides it as any producer would."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()
    partition_key: bytes | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record in a processor of the user's own."""

    key: Any
    value: Any
    timestamp_ms: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record:
        return replace(self, key=key)

    def with_value(self, value: Any) -> Record:
        return replace(self, value=value)

    def with_timestamp(self, timestamp_ms: int) -> Record:
        return replace(self, timestamp_ms=timestamp_ms)

    def with_headers(self, headers: Headers) -> Record:
        return replace(self, headers=headers)
