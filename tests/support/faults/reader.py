"""The program of a reader process: `python -m support.faults.reader OPTIONS`, options as JSON.

Reads all partitions from their start on through every fault, and commits its positions for a group
of its own, one commit after the other. Writes down what it saw where, and what it committed.
Ends on SIGTERM.
"""

import sys
import time
from pathlib import Path

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from support.ending import Ending
from support.faults.events import ReaderOptions, Reading
from support.journal import JournalWriter, now_ns

POLL_SECONDS = 0.2
RECORDS_PER_LINE_MAX = 500
COMMIT_SECONDS = 0.5
"""Between two commits."""


def run(options: ReaderOptions, ending: Ending) -> None:
    journal = JournalWriter(Path(options.journal))
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "socket.timeout.ms": 5_000,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "fetch.error.backoff.ms": 50,
            "topic.metadata.refresh.interval.ms": 2_000,
            "log_level": 0,
        }
    )
    consumer.assign(
        [
            TopicPartition(options.topic, partition, OFFSET_BEGINNING)
            for partition in range(options.partitions)
        ]
    )
    positions: dict[int, int] = {}
    next_commit = time.monotonic() + COMMIT_SECONDS
    while not ending():
        seen: dict[int, list[tuple[int, str]]] = {}
        for message in consumer.consume(RECORDS_PER_LINE_MAX, POLL_SECONDS):
            if message.error():
                journal.write(Reading(now_ns(), trouble=str(message.error())))
            else:
                entry = (message.offset(), message.value().decode())
                seen.setdefault(message.partition(), []).append(entry)
        if seen:
            journal.write(Reading(now_ns(), seen))
            positions |= {partition: found[-1][0] + 1 for partition, found in seen.items()}
        if positions and time.monotonic() > next_commit:
            _commit(consumer, options.topic, positions, journal)
            next_commit = time.monotonic() + COMMIT_SECONDS
    consumer.close()


def _commit(
    consumer: Consumer, topic: str, positions: dict[int, int], journal: JournalWriter
) -> None:
    wanted = [TopicPartition(topic, partition, at) for partition, at in positions.items()]
    try:
        done = consumer.commit(offsets=wanted, asynchronous=False)
    except KafkaException as error:
        journal.write(Reading(now_ns(), uncertain=positions, trouble=str(error)))
        return
    kept = {each.partition: each.offset for each in done if each.error is None}
    lost = {partition: at for partition, at in positions.items() if partition not in kept}
    journal.write(Reading(now_ns(), committed=kept, uncertain=lost))


def main(arguments: list[str]) -> int:
    run(msgspec.json.decode(arguments[0], type=ReaderOptions), Ending())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
