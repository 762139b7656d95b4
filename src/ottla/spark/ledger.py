"""Which micro-batches of a query are written: a number kept as a group's committed offset.

The offset is the number of the next batch, its note the query it belongs to. It is committed in
the transaction that holds the batch's records, so that both are there or neither. A broker takes
offsets only for a topic that exists: the entry stands at partition 0 of one that the batch wrote
to, and the highest of all entries counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.clients.client import Client
from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.group_offsets import CommittedOffset, committed_offsets
from ottla.model.ids import TopicPartition

NO_QUERY = "-"
"""The note of a batch that belongs to no streaming query."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One micro-batch of one query."""

    group: str
    query: str
    batch_id: int

    def note(self, topics: Iterable[str]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit together with the batch's records in these topics."""
        where = TopicPartition(min(topics), 0)
        return {where: OffsetAndMetadata(self.batch_id + 1, self.query)}

    def is_among(self, committed: Mapping[TopicPartition, CommittedOffset]) -> bool:
        """Whether this batch, or a later one of the same query, is written.

        Numbers of another query under the same name say nothing: it counted from 0 as well.
        """
        return any(
            entry.metadata == self.query and entry.offset > self.batch_id
            for entry in committed.values()
        )


async def is_written(client: Client, entry: LedgerEntry, *, for_certain: bool) -> bool:
    """Asks the group's coordinator; for certain, not before every transaction in it has ended."""
    committed = await committed_offsets(client, entry.group, waits_for_transactions=for_certain)
    return entry.is_among(committed)
