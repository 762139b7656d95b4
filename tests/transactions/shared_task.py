"""A task that writes its own partition with a producer id and epoch it was given, as Spark's do."""

import os
from dataclasses import dataclass

from transactions.raw_producer import Dialect, RawProducer

BATCHES = 3
RECORDS_PER_BATCH = 4


@dataclass(frozen=True, slots=True)
class Task:
    """All that a task is told by the driver."""

    bootstrap: str
    transactional_id: str
    dialect: Dialect
    producer_id: int
    epoch: int
    topic: str
    partition: int
    round_number: int

    def values(self) -> list[bytes]:
        """Everything it writes."""
        return [
            b"%d/%d/%d" % (self.round_number, self.partition, number)
            for number in range(BATCHES * RECORDS_PER_BATCH)
        ]


def run_task(task: Task) -> int:
    """Write the task's values in a few batches; returns the process that did."""
    producer = RawProducer(
        task.bootstrap,
        task.transactional_id,
        task.dialect,
        producer_id=task.producer_id,
        epoch=task.epoch,
    )
    place = (task.topic, task.partition)
    producer.added.add(place)  # the driver did that, where the protocol wants it
    values = task.values()
    for start in range(0, len(values), RECORDS_PER_BATCH):
        producer.write(place, *values[start : start + RECORDS_PER_BATCH])
    producer.close()
    return os.getpid()
