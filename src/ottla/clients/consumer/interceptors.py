"""Who may look at and change every record on its way in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.consumer.record import ConsumerRecord
from ottla.model.ids import TopicPartition


class ConsumerInterceptor(Protocol):
    """Sees what a poll returns and what is committed."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """The records to return in their place; they may be the same."""

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """These were committed."""
