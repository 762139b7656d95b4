"""A process that moves money until it is told to stop, is fenced or is killed.

    python transfer_writer.py confluent|raw BOOTSTRAP TRANSACTIONAL_ID TOPIC JOURNAL SEED

confluent speaks the first version of the transaction protocol, raw the second. Ends with 0 when
told to by SIGTERM, with 3 when somebody else holds the transactional id now.
"""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from confluent_kafka import KafkaException, Producer

from ottla.errors import ErrorCode
from transactions.bank import ABORTED_SHARE, Journal, Leg, random_transfer
from transactions.raw_producer import SECOND, RawProducer, Refused

TIMEOUT_MS = 1_500
CALL_SECONDS_MAX = 25.0
FENCED_EXIT = 3

FENCED_CODES = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}

Transact = Callable[[tuple[Leg, Leg], bool], bool]
"""Writes the legs, then commits or aborts; returns whether they are committed."""


def confluent_transact(bootstrap: str, transactional_id: str, topic: str) -> Transact:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "message.timeout.ms": TIMEOUT_MS,
            "linger.ms": 0,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "log_level": 0,
        }
    )
    producer.init_transactions(CALL_SECONDS_MAX)

    def transact(legs: tuple[Leg, Leg], is_commit: bool) -> bool:
        producer.begin_transaction()
        try:
            for leg in legs:
                producer.produce(topic, leg.encode(), partition=leg.partition)
                producer.flush(CALL_SECONDS_MAX)  # a request for each leg
            if is_commit:
                _until_done(producer.commit_transaction)
                return True
        except KafkaException as problem:
            if problem.args[0].fatal():
                raise
        _until_done(producer.abort_transaction)
        return False

    return transact


def _until_done(call: Callable[[float], None]) -> None:
    while True:
        try:
            return call(CALL_SECONDS_MAX)
        except KafkaException as problem:
            if not problem.args[0].retriable():
                raise


def raw_transact(bootstrap: str, transactional_id: str, topic: str) -> Transact:
    producer = RawProducer(bootstrap, transactional_id, SECOND, TIMEOUT_MS)
    producer.init()

    def transact(legs: tuple[Leg, Leg], is_commit: bool) -> bool:
        try:
            for leg in legs:
                producer.write((topic, leg.partition), leg.encode())
            if is_commit:
                producer.commit()
                return True
        except Refused:
            pass  # too late: its time was up, or somebody else is there; aborting tells which
        producer.abort()
        return False

    return transact


def main(arguments: list[str]) -> int:
    kind, bootstrap, transactional_id, topic, path, seed = arguments
    is_told_to_stop = False

    def stop(*_: object) -> None:
        nonlocal is_told_to_stop
        is_told_to_stop = True

    signal.signal(signal.SIGTERM, stop)
    random, journal = Random(int(seed)), Journal(Path(path))
    begin = confluent_transact if kind == "confluent" else raw_transact
    number = 0
    try:
        transact = begin(bootstrap, transactional_id, topic)
        while not is_told_to_stop:
            number += 1
            name = f"{transactional_id}.{seed}.{number}"
            journal.note("begun", name)
            is_commit = random.random() > ABORTED_SHARE
            is_committed = transact(random_transfer(name, random), is_commit)
            journal.note("committed" if is_committed else "aborted", name)
    except KafkaException as problem:
        if not problem.args[0].fatal():
            raise
        return FENCED_EXIT
    except Refused as problem:
        if problem.code not in FENCED_CODES:
            raise
        return FENCED_EXIT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
