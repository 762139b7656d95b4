"""A task's stores from their changelogs, in a Python process of Spark's.

Happens in the first micro-batch of a query whose checkpoint was lost, once for each partition
number, before the engine's task is made. How far changelogs are read was decided at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ottla.clients.arrow.partition_reader import PartitionReader
from ottla.model.ids import TopicPartition
from ottla.streams.engine.changelog import place_name, store_changes
from ottla.streams.engine.records import InputRecord
from ottla.streams.spark.kept_stores import logged_stores
from ottla.streams.spark.pages import PagedStore
from ottla.streams.spark.state_cells import StateCells
from ottla.streams.spark.worker import Work
from ottla.streams.store_spec import StoreKind, StoreSpec

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

_MARK: Final = ""
"""No store has this name: under it stands that a partition's stores are restored."""
_DONE: Final = b"restored"
_COLUMNS: Final = ("key", "value", "timestamp", "offset")
RECORDS_AT_A_TIME: Final = 50_000
"""After so many what changed is written down: the state may be larger than memory."""


def restore(work: Work, partition: int, state: MapState) -> None:
    """Fills the stores of the partition whose turn it is, if that is still to be done."""
    if not work.changelogs:
        return
    mark = StateCells(state, _MARK)
    if mark.get(0) is not None:
        return
    for spec in logged_stores(work.subtopology):
        start, end = work.changelogs[spec.name][partition]
        topic = work.topology.changelog_topic(spec.name, work.app_id)
        records = changelog(TopicPartition(topic, partition), (start, end), work.kafka)
        _fill(spec, StateCells(state, spec.name), records)
    mark.put(0, _DONE)


def changelog(
    where: TopicPartition, bounds: tuple[int, int], kafka: Mapping[str, str]
) -> Iterator[InputRecord]:
    """What was committed to a changelog within [start, end), in order."""
    start, end = bounds
    if start >= end:
        return
    with PartitionReader(
        where, start, end, columns=_COLUMNS, read_committed=True, config=kafka
    ) as reader:
        for batch in reader:
            columns = [batch.column(name) for name in _COLUMNS]
            columns[2] = columns[2].cast("int64")
            rows = zip(*(column.to_pylist() for column in columns), strict=True)
            yield from (InputRecord(*row) for row in rows)


def _fill(spec: StoreSpec, cells: StateCells, records: Iterator[InputRecord]) -> None:
    store = PagedStore(cells)
    for number, record in enumerate(records, 1):
        if number % RECORDS_AT_A_TIME == 0:
            store.save()
            store = PagedStore(cells)
        apply_record(spec, store, record)
    store.save()


def apply_record(spec: StoreSpec, store: PagedStore, record: InputRecord) -> None:
    """Changes the store as the record says."""
    is_placed = spec.kind is StoreKind.SUPPRESSION
    before = store.get(place_name(record)) if is_placed else None
    for key, value in store_changes(spec, record, before):
        if value is None:
            store.delete(key)
        else:
            store.put(key, value)
