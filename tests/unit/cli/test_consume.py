"""Where `ottla consume` ends that does not follow."""

import asyncio
from collections.abc import Iterable

import pytest

from ottla.cli.consume import Job, read_to
from ottla.cli.record_output import OutputRules
from ottla.cli.starting_point import BEGINNING
from ottla.clients.consumer.record import ConsumerRecord
from ottla.model.ids import Offset, TopicPartition

WHERE = TopicPartition("t", 0)
JOB = Job("t", BEGINNING, (), False, None, False, OutputRules(with_offsets=True))


class GrowingPartition:
    """A consumer of a partition that never ends: each poll finds three records more."""

    def __init__(self) -> None:
        self.at = 0
        self.assigned: list[set[TopicPartition]] = []

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.assigned.append(set(partitions))

    def seek(self, where: TopicPartition, offset: int) -> None:
        self.at = offset

    async def poll(self, timeout_s: float, *, max_records: int) -> list[ConsumerRecord]:
        self.at += 3
        return [
            ConsumerRecord("t", 0, 0, 0, offset, 0, None, b"v")
            for offset in range(self.at - 3, self.at)
        ]

    async def position(self, where: TopicPartition) -> int:
        return self.at


def test_records_written_since_the_end_was_asked_for_are_left_out(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    consumer = GrowingPartition()
    asyncio.run(read_to(consumer, {WHERE: Offset(0)}, {WHERE: Offset(5)}, JOB))
    shown = capfdbinary.readouterr().out.splitlines()
    assert shown == [b"0:%d\tv" % offset for offset in range(5)]
    assert consumer.assigned == [{WHERE}, set()]


def test_a_partition_that_is_read_to_its_end_already_is_not_asked_for(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    consumer = GrowingPartition()
    asyncio.run(read_to(consumer, {WHERE: Offset(5)}, {WHERE: Offset(5)}, JOB))
    assert (consumer.at, consumer.assigned) == (0, [set()])
    assert capfdbinary.readouterr().out == b""
