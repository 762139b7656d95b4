"""The program of a process that moves money: `python -m support.faults.transfers OPTIONS`, as JSON.

A transfer is two records of one transaction. Ends with 0 when told to by SIGTERM, and with 3 when
somebody else holds its transactional id, or its transaction was ended for it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ConfluentProducer

from ottla import Producer as OttlaProducer
from ottla.clients.failures import Fenced
from ottla.errors import OttlaError
from support.ending import Ending
from support.faults.events import Note, TransferOptions
from support.journal import JournalWriter, now_ns
from transactions.bank import ABORTED_SHARE, Leg, random_transfer

TIMEOUT_MS = 6_000
CALL_SECONDS_MAX = 60.0
FENCED_EXIT = 3


class Displaced(Exception):
    """This producer may write no more; a new one has to take over."""


class Client(Protocol):
    """A transactional producer of some library."""

    def transact(self, legs: tuple[Leg, Leg], *, commits: bool) -> bool:
        """Writes the legs, then commits or aborts; returns whether they are committed."""


class ConfluentClient:
    """librdkafka's producer, which speaks the first version of the protocol."""

    def __init__(self, options: TransferOptions) -> None:
        self._topic = options.topic
        self._producer = ConfluentProducer(
            {
                "bootstrap.servers": options.bootstrap,
                "transactional.id": options.transactional_id,
                "transaction.timeout.ms": TIMEOUT_MS,
                "message.timeout.ms": TIMEOUT_MS,
                "socket.timeout.ms": 5_000,
                "linger.ms": 0,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "retry.backoff.ms": 50,
                "topic.metadata.refresh.interval.ms": 2_000,
                "log_level": 0,
            }
        )
        _until_done(self._producer.init_transactions)

    def transact(self, legs: tuple[Leg, Leg], *, commits: bool) -> bool:
        try:
            return self._try(legs, commits=commits)
        except KafkaException as problem:
            if problem.args[0].fatal():
                raise Displaced(str(problem)) from problem
            raise

    def _try(self, legs: tuple[Leg, Leg], *, commits: bool) -> bool:
        self._producer.begin_transaction()
        try:
            for leg in legs:
                self._producer.produce(self._topic, leg.encode(), partition=leg.partition)
                self._producer.flush(CALL_SECONDS_MAX)
            if commits:
                _until_done(self._producer.commit_transaction)
                return True
        except KafkaException as problem:
            if problem.args[0].fatal():
                raise
        _until_done(self._producer.abort_transaction)
        return False


def _until_done(call: Callable[[float], None]) -> None:
    while True:
        try:
            return call(CALL_SECONDS_MAX)
        except KafkaException as problem:
            if not problem.args[0].retriable():
                raise


class OttlaClient:
    """Our own producer, which speaks the second version."""

    def __init__(self, options: TransferOptions) -> None:
        self._topic = options.topic
        self._producer = OttlaProducer(
            options.bootstrap,
            transactional_id=options.transactional_id,
            config={
                "transaction.timeout.ms": str(TIMEOUT_MS),
                "request.timeout.ms": "5000",
                "linger.ms": "0",
            },
        )

    def transact(self, legs: tuple[Leg, Leg], *, commits: bool) -> bool:
        try:
            self._producer.begin_transaction()
            try:
                for leg in legs:
                    sent = self._producer.send(self._topic, leg.encode(), partition=leg.partition)
                    sent.result(CALL_SECONDS_MAX)
                if commits:
                    self._producer.commit_transaction()
                    return True
            except Fenced:
                raise
            except (OttlaError, TimeoutError):
                pass  # Something was not written, or it is not known: it must not be committed.
            self._producer.abort_transaction()
        except Fenced as problem:
            raise Displaced(str(problem)) from problem
        return False


def run(options: TransferOptions, ending: Ending) -> None:
    journal = JournalWriter(Path(options.journal))
    random = Random(options.life)
    kind = OttlaClient if options.library == "ottla" else ConfluentClient
    client: Client = kind(options)
    number = 0
    while not ending():
        number += 1
        name = f"{options.transactional_id}.{options.life}.{number}"
        journal.write(Note("begun", name, now_ns()))
        commits = random.random() > ABORTED_SHARE
        is_committed = client.transact(random_transfer(name, random), commits=commits)
        journal.write(Note("committed" if is_committed else "aborted", name, now_ns()))


def main(arguments: list[str]) -> int:
    try:
        run(msgspec.json.decode(arguments[0], type=TransferOptions), Ending())
    except Displaced as problem:
        print(problem, file=sys.stderr)
        return FENCED_EXIT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
