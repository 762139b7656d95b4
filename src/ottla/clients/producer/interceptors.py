"""Who may look at and change every record on its way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from ottla.clients.producer.batch import RecordMetadata
from ottla.errors import OttlaError


class OutgoingRecord(msgspec.Struct, frozen=True, gc=False):
    """A record as it was given to send, before anything is made of it."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None


class ProducerInterceptor(Protocol):
    """Sees records before they are serialized, and what became of them."""

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        """The record to send in its place; it may be the same."""

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: OttlaError | None) -> None:
        """Where the record is, or why it is nowhere. Called on the loop's thread."""
