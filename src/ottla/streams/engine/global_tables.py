"""Keeping a global table: every record of its topic, from all partitions, in one store."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.streams.engine.records import InputRecord
from ottla.streams.engine.stores import Store
from ottla.streams.engine.table_store import TableStore
from ottla.streams.store_spec import StoreSpec
from ottla.streams.topology import GlobalTable


class GlobalTableUpdater:
    """Writes a topic's records into the store of its global table."""

    __slots__ = ("_read_key", "_read_value", "_store")

    def __init__(self, table: GlobalTable, spec: StoreSpec, store: Store) -> None:
        self._store = TableStore(spec, store)
        self._read_key = table.source.key.deserializer()
        self._read_value = table.source.value.deserializer()

    def update(self, records: Iterable[InputRecord]) -> None:
        """Takes records over; those without a key say nothing about a table."""
        for record in records:
            if record.key is not None:
                value = None if record.value is None else self._read_value(record.value)
                self._store.put(self._read_key(record.key), value, record.timestamp_ms)
