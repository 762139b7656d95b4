"""Compaction and recovery of partitions that transactions have written to, through the broker."""

from collections.abc import Iterator
from random import Random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Broker
from support.eventually import eventually
from support.requests import EARLIEST, LATEST, Place, a_topic, list_offset
from support.wire import Connection
from transactions.committed_reads import READ_UNCOMMITTED, CommittedReader
from transactions.conftest import FEW_SHARDS
from transactions.raw_producer import FIRST, SECOND, Dialect, RawProducer

PLACE: Place = ("table", 0)
KEYS = 8
TRANSACTIONS = 60
DELETE_RETENTION_SECONDS = 60
CLOCK_TURN_SECONDS, CLOCK_TURNS_MAX = 2, 100


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {**FEW_SHARDS, "log.cleaner.backoff.ms": "1000"}
    with Broker(settings=settings) as started:
        with Connection(started.bootstrap_servers) as connection:
            a_topic(
                connection,
                PLACE[0],
                cleanup_policy="compact",
                segment_ms="5",
                min_cleanable_dirty_ratio="0.01",
                delete_retention_ms=str(DELETE_RETENTION_SECONDS * 1000),
            )
        yield started


def write_transactions(producer: RawProducer, random: Random) -> dict[bytes, bytes]:
    """Many small transactions, a third of them aborted; returns what stands at the end."""
    table: dict[bytes, bytes] = {}
    for number in range(TRANSACTIONS):
        changes = {
            b"key %d" % random.randrange(KEYS): b"value %d" % number
            for _ in range(random.randint(1, 3))
        }
        is_aborted = number % 3 == 2
        mark = b" aborted" if is_aborted else b""
        padded = [(key, value + mark + b"." * 100) for key, value in changes.items()]
        producer.write_records(PLACE, padded)
        if is_aborted:
            producer.abort()
        else:
            producer.commit()
            table |= changes
    return table


def table_of(reader: CommittedReader) -> dict[bytes, bytes]:
    """What a reader of committed records makes of the partition."""
    table: dict[bytes, bytes] = {}
    for record in reader.read(PLACE).records:
        value = bytes(record.value or b"")
        assert b"aborted" not in value, "an aborted value was read"
        table[bytes(record.key or b"")] = value.rstrip(b".")
    return table


def compact(broker: Broker, reader: CommittedReader, *, below: int) -> None:
    """Turn the broker's clock until fewer records than that are in the log.

    Not without end, for who compacts may be slow by any clock, and open transactions grow old.
    """
    turns = iter(range(CLOCK_TURNS_MAX))

    def is_compacted() -> bool:
        if next(turns, None) is not None:
            broker.clock.advance(seconds=CLOCK_TURN_SECONDS)
        return len(reader.read(PLACE, isolation=READ_UNCOMMITTED).records) < below

    eventually(is_compacted, f"a compaction to below {below} records")


@pytest.mark.parametrize("dialect", [FIRST, SECOND], ids=lambda one: one.name)
def test_aborted_values_are_never_seen_and_committed_ones_stay(
    broker: Broker, reader: CommittedReader, dialect: Dialect
) -> None:
    producer = RawProducer(broker.bootstrap_servers, "keeper", dialect)
    producer.init()
    table = write_transactions(producer, Random(7))
    assert table_of(reader) == table
    for _ in range(3):
        compact(broker, reader, below=2 * TRANSACTIONS // 3)
        assert table_of(reader) == table
        broker.restart()
        assert table_of(reader) == table, "after a restart"
        broker.clock.advance(seconds=2 * DELETE_RETENTION_SECONDS)
        table |= write_transactions(producer, Random(8))
        reader.wait_stable(PLACE)
        assert table_of(reader) == table
    producer.close()
    assert confluent_table(broker) == table


def confluent_table(broker: Broker) -> dict[bytes, bytes]:
    """The same by a real client."""
    with Connection(broker.bootstrap_servers) as connection:
        start = list_offset(connection, PLACE, EARLIEST).offset
        end = list_offset(connection, PLACE, LATEST).offset
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(*PLACE, start)])
    table: dict[bytes, bytes] = {}

    def is_read() -> bool:
        message = consumer.poll(0.5)
        if message is None or message.error():
            return consumer.position([TopicPartition(*PLACE)])[0].offset >= end
        table[message.key()] = message.value().rstrip(b".")
        return False

    eventually(is_read, "the end of the table")
    consumer.close()
    return table


def test_an_open_transaction_is_not_compacted_away(broker: Broker, reader: CommittedReader) -> None:
    open_one = RawProducer(broker.bootstrap_servers, "open", SECOND, timeout_ms=900_000)
    open_one.init()
    keeper = RawProducer(broker.bootstrap_servers, "keeper", SECOND)
    keeper.init()
    table = write_transactions(keeper, Random(7))
    open_one.write(PLACE, b"late", key=b"key 0")
    after = write_transactions(keeper, Random(8))
    everything = len(reader.read(PLACE, isolation=READ_UNCOMMITTED).records)
    compact(broker, reader, below=everything - TRANSACTIONS)
    broker.restart()
    assert table_of(reader) == table, "what came after the open transaction is not shown yet"
    open_one.commit()
    reader.wait_stable(PLACE)
    assert table_of(reader) == table | {b"key 0": b"late"} | after
    open_one.close()
    keeper.close()


def test_a_producer_goes_on_after_all_of_its_records_were_compacted_away(
    broker: Broker, reader: CommittedReader
) -> None:
    """What is known of its sequences outlives its records, and a restart."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "client"}
    client = Producer(settings)
    client.init_transactions(20)
    commit_one(client, b"first")
    other = RawProducer(broker.bootstrap_servers, "other", SECOND)
    other.init()
    write_transactions(other, Random(7))
    compact(broker, reader, below=2 * TRANSACTIONS // 3)
    broker.restart()
    commit_one(client, b"second")
    reader.wait_stable(PLACE)
    assert table_of(reader)[b"key 0"] == b"second"
    other.close()


def commit_one(client: Producer, value: bytes) -> None:
    client.begin_transaction()
    client.produce(PLACE[0], value, key=b"key 0", partition=PLACE[1])
    client.commit_transaction(20)
