"""Reads a topic from its beginning, and on each call what was committed since the last one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.clients.arrow.partition_reader import PartitionReader
from ottla.clients.blocking.admin import Admin
from ottla.model.ids import TopicPartition
from ottla.streams.engine.records import InputRecord

_LATEST = -1
_EARLIEST = -2
_COLUMNS = ("key", "value", "timestamp", "offset")


class TopicFollower:
    """How far each partition was read. For one thread; connects on each call."""

    __slots__ = ("_kafka", "_positions", "topic")

    def __init__(self, topic: str, kafka: Mapping[str, str]) -> None:
        self.topic = topic
        self._kafka = dict(kafka)
        self._positions: dict[int, int] = {}

    def news(self) -> Iterator[InputRecord]:
        """The records that are new, partition by partition.

        One counts as read when the next is asked for: at which somebody fails comes again.
        """
        for partition, (start, end) in self._ranges().items():
            begin = max(start, self._positions.get(partition, 0))
            for record in self._read(partition, begin, end):
                yield record
                self._positions[partition] = record.offset + 1
            self._positions[partition] = end

    def _ranges(self) -> dict[int, tuple[int, int]]:
        with Admin(config=self._kafka) as admin:
            numbers = [one.partition for one in admin.describe_topic(self.topic).partitions]
            ends = admin.list_offsets(
                self.topic, dict.fromkeys(numbers, _LATEST), committed_only=True
            )
            fresh = [n for n in numbers if ends[n].offset > self._positions.get(n, 0)]
            if not fresh:
                return {}
            starts = admin.list_offsets(self.topic, dict.fromkeys(fresh, _EARLIEST))
        return {number: (starts[number].offset, ends[number].offset) for number in fresh}

    def _read(self, partition: int, start: int, end: int) -> Iterator[InputRecord]:
        if start >= end:
            return
        with PartitionReader(
            TopicPartition(self.topic, partition),
            start,
            end,
            columns=_COLUMNS,
            read_committed=True,
            config=self._kafka,
        ) as reader:
            for batch in reader:
                keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
                times = batch.column("timestamp").cast("int64").to_pylist()
                offsets = batch.column("offset").to_pylist()
                for row in zip(keys, values, times, offsets, strict=True):
                    yield InputRecord(*row)
