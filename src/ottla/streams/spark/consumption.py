"""Which offsets a micro-batch has used up, on its way from the tasks that did to the sink.

The sink commits them for the application's group, in the transaction of the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ottla.model.ids import TopicPartition
from ottla.spark.offset_ranges import OffsetRange

if TYPE_CHECKING:
    import pyarrow

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[str, int, int, int]]).decode


class Consumption:
    """Ranges by partition. Several of one partition are neighbours: they become one."""

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        self.ranges: dict[TopicPartition, tuple[int, int]] = {}

    def add(self, one: OffsetRange) -> None:
        if one.size:
            start, end = self.ranges.get(one.where, (one.start, one.end))
            self.ranges[one.where] = min(start, one.start), max(end, one.end)

    def add_text(self, text: str) -> None:
        """Takes what another one has said."""
        for topic, partition, start, end in _decode(text):
            self.add(OffsetRange(TopicPartition(topic, partition), start, end))

    def add_packets(self, packets: Iterable[Any]) -> None:
        """Takes what was read, as rows of Spark's."""
        for row in packets:
            where = TopicPartition(row.topic, row.partition)
            self.add(OffsetRange(where, row.offset, row.next_offset))

    def text(self) -> str | None:
        """Says it; None where nothing was used up."""
        rows = [(one.topic, one.partition, *bounds) for one, bounds in self.ranges.items()]
        return _encode(rows).decode() if rows else None

    def noting(self, packets: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Hands packets on, and takes what they say."""
        for batch in packets:
            for text in batch.column("consumed").to_pylist():
                if text is not None:
                    self.add_text(text)
            yield batch
