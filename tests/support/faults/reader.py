"""The program of a reader process: `python -m support.faults.reader OPTIONS`, options as JSON.

Reads all partitions from their start on, committed records only, through every fault, and writes
down what it saw where. Ends on SIGTERM.
"""

import sys
from pathlib import Path

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from support.ending import Ending
from support.faults.events import ReaderOptions, Reading
from support.journal import JournalWriter, now_ns

POLL_SECONDS = 0.2
RECORDS_PER_LINE_MAX = 500


def run(options: ReaderOptions, ending: Ending) -> None:
    journal = JournalWriter(Path(options.journal))
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": "reads-without-a-group",
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
    consumer.close()


def main(arguments: list[str]) -> int:
    run(msgspec.json.decode(arguments[0], type=ReaderOptions), Ending())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
