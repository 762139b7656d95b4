"""The program of a producer process: `python -m support.faults.producer OPTIONS`, options as JSON.

Idempotent with acks=all unless told otherwise. Writes on through every fault, and writes down what
became of each record.
On SIGTERM it sends no more, waits for what is under way and ends.
"""

import sys
import threading
import time
from pathlib import Path
from typing import Protocol

import msgspec
from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as ConfluentProducer

from ottla import Producer as OttlaProducer
from support.ending import Ending
from support.faults.events import ProducerOptions, Sent, Writing, value_of
from support.journal import JournalWriter, now_ns

TURN_SECONDS = 0.02
FLUSH_SECONDS_MAX = 100.0
GIVE_UP_MS = 90_000
UNDER_WAY_MAX = 20_000
"""While nobody answers, producers wait instead of filling their memory."""


class Results:
    """What became of records since the last line was written; any thread may add."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._acknowledged: list[Sent] = []
        self._failed: list[Sent] = []
        self.under_way = 0

    def sending(self) -> None:
        with self._lock:
            self.under_way += 1

    def add(self, sent: Sent, problem: str | None) -> None:
        with self._lock:
            self.under_way -= 1
            (self._failed if problem else self._acknowledged).append(sent)
        if problem:
            self._journal.write(Writing(trouble=problem))

    def write(self) -> None:
        with self._lock:
            acknowledged, self._acknowledged = self._acknowledged, []
            failed, self._failed = self._failed, []
        if acknowledged or failed:
            self._journal.write(Writing(acknowledged, failed))


class Client(Protocol):
    """A producer of some library."""

    def send(self, partition: int, number: int) -> None: ...

    def turn(self) -> None:
        """What the library wants done now and then."""

    def finish(self) -> None:
        """Waits for what is under way."""


class ConfluentClient:
    """librdkafka's producer."""

    def __init__(self, options: ProducerOptions, results: Results) -> None:
        self._options = options
        self._results = results
        self._producer = ConfluentProducer(
            {
                "bootstrap.servers": options.bootstrap,
                "enable.idempotence": options.is_idempotent,
                "acks": options.acks,
                "linger.ms": 5,
                "message.timeout.ms": GIVE_UP_MS,
                "socket.timeout.ms": 5_000,
                "request.timeout.ms": 5_000,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 5_000,
                "log_level": 0,
            }
        )

    def send(self, partition: int, number: int) -> None:
        sent_ns = now_ns()

        def delivered(error: KafkaError | None, message: Message) -> None:
            known = None if error is not None else message.offset()
            offset = -1 if known is None else max(known, -1)
            sent = Sent(partition, number, sent_ns, now_ns(), offset)
            self._results.add(sent, str(error) if error is not None else None)

        value = value_of(self._options.name, number)
        self._producer.produce(
            self._options.topic, value.encode(), partition=partition, on_delivery=delivered
        )

    def turn(self) -> None:
        self._producer.poll(0)

    def finish(self) -> None:
        self._producer.flush(FLUSH_SECONDS_MAX)


class OttlaClient:
    """Our own producer."""

    def __init__(self, options: ProducerOptions, results: Results) -> None:
        self._options = options
        self._results = results
        self._producer = OttlaProducer(
            options.bootstrap,
            config={
                "enable.idempotence": str(options.is_idempotent).lower(),
                "acks": options.acks,
                "delivery.timeout.ms": str(GIVE_UP_MS),
                "request.timeout.ms": "5000",
                "retry.backoff.ms": "50",
                "retry.backoff.max.ms": "200",
                "linger.ms": "5",
            },
        )

    def send(self, partition: int, number: int) -> None:
        sent_ns = now_ns()

        def delivered(receipt: object, error: BaseException | None) -> None:
            offset = -1 if error is not None else int(getattr(receipt, "offset", -1))
            sent = Sent(partition, number, sent_ns, now_ns(), offset)
            problem = None if error is None else f"{type(error).__name__}: {error}"
            self._results.add(sent, problem)

        value = value_of(self._options.name, number).encode()
        self._producer.send(self._options.topic, value, partition=partition, on_delivery=delivered)

    def turn(self) -> None:
        pass

    def finish(self) -> None:
        self._producer.flush()
        self._producer.close(5.0)


def run(options: ProducerOptions, ending: Ending) -> None:
    journal = JournalWriter(Path(options.journal))
    results = Results(journal)
    kind = OttlaClient if options.library == "ottla" else ConfluentClient
    client: Client = kind(options, results)
    used = dict.fromkeys(range(options.partitions), 0)
    per_turn = max(1, int(options.records_per_second * TURN_SECONDS))
    turn = 0
    while not ending():
        for _ in range(per_turn if results.under_way < UNDER_WAY_MAX else 0):
            turn += 1
            partition = turn % options.partitions
            results.sending()
            client.send(partition, used[partition])
            used[partition] += 1
        client.turn()
        results.write()
        time.sleep(TURN_SECONDS)
    client.finish()
    results.write()
    journal.write(Writing(sent=used))


def main(arguments: list[str]) -> int:
    options = msgspec.json.decode(arguments[0], type=ProducerOptions)
    try:
        run(options, Ending())
    except Exception as error:
        JournalWriter(Path(options.journal)).write(
            Writing(trouble=f"{type(error).__name__}: {error}")
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
