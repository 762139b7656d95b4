"""`ottla transactions` while real producers write, and after one left a transaction hanging."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaException, Producer

from ottla.clients.address import parse_addresses
from ottla.clients.client import Client
from ottla.clients.offsets import LATEST, list_offsets
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.record import Record
from ottla.testing import Broker
from support.command_line import Ottla, ottla_here

TRANSACTION_SECONDS = 30
LOST_PRODUCER = 987_654
"""No coordinator gave this id out."""
BY_NAME_UNTIL = 11
"""The last version of Produce in which partitions are not added to a transaction implicitly."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Lets old clients write without asking their coordinator, as old brokers did."""
    with Broker(settings={"transaction.partition.verification.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def ottla(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    """The command line in this process: these tests give many short commands."""
    return ottla_here(bootstrap, monkeypatch)


@contextmanager
def an_open_transaction(bootstrap: str, name: str, topic: str) -> Iterator[Producer]:
    """A producer that has written to partition 0 in a transaction and not ended it."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": TRANSACTION_SECONDS * 1000,
            "log_level": 0,  # it goes on looking for the broker when the tests are over
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, value=b"in doubt", partition=0)
    assert producer.flush(20) == 0
    yield producer


def leave_hanging(bootstrap: str, topic: str, *, timestamp_ms: int) -> None:
    """Writes a transactional record to partition 1 that no coordinator will end."""
    stamp = ProducerStamp(LOST_PRODUCER, 3, 0, is_transactional=True)
    batch = build_batch([Record(0, timestamp_ms, None, b"lost", ())], producer=stamp)
    request = ProduceRequest(
        transactional_id="forgotten",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(topic, partition_data=[PartitionProduceData(1, batch)])],
    )

    async def main() -> None:
        async with Client(parse_addresses([bootstrap])) as client:
            answer = await client.call(request, ProduceResponse, at_most=BY_NAME_UNTIL)
            assert answer.responses[0].partition_responses[0].error_code == 0

    asyncio.run(main())


def committed_end(bootstrap: str, topic: str, partition: int) -> int:
    """How far a reader of committed records comes."""

    async def main() -> int:
        async with Client(parse_addresses([bootstrap])) as client:
            asked = {partition: LATEST}
            listed = await list_offsets(client, topic, asked, committed_only=True)
            return listed[partition].offset

    return asyncio.run(main())


def test_an_open_transaction_is_listed_and_described(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    name = new_name()
    with an_open_transaction(bootstrap, name, topic) as producer:
        listed = json.loads(ottla("transactions", "list", "--state", "ongoing", "--json").out)
        (row,) = [row for row in listed if row["transactional_id"] == name]
        chosen = ottla("transactions", "list", "--producer-id", str(row["producer_id"]))
        assert [line.split("\t")[0] for line in chosen.lines[1:]] == [name]
        assert ottla("transactions", "list", "--matching", f"{name}.+").lines[1:] == []
        assert ottla("transactions", "list", "--longer-than", "1h").lines[1:] == []

        (described,) = json.loads(ottla("transactions", "describe", name, "--json").out)
        assert described["state"] == "Ongoing"
        assert described["timeout_ms"] == TRANSACTION_SECONDS * 1000
        assert described["partitions"] == [{"topic": topic, "partition": 0}]
        assert f"partitions   {topic}:0" in ottla("transactions", "describe", name).out

        shown = ottla("transactions", "producers", topic, "--open", "--json")
        (at,) = json.loads(shown.out)
        assert (at["partition"], at["transaction_start_offset"]) == (0, 0)
        assert at["producer_id"] == described["producer_id"]
        producer.commit_transaction(20)
    (ended,) = json.loads(ottla("transactions", "describe", name, "--json").out)
    assert (ended["state"], ended["partitions"]) == ("CompleteCommit", [])
    assert json.loads(ottla("transactions", "producers", topic, "--open", "--json").out) == []


def test_an_id_that_nobody_uses_is_an_error(ottla) -> None:
    unknown = ottla("transactions", "describe", "never-there")
    assert (unknown.code, "there is no transactional id" in unknown.err) == (1, True)
    assert ottla("transactions", "abort", "never-there", "--yes").code == 1
    assert ottla("transactions", "producers", "never-there").code == 1


def test_a_transaction_is_aborted_by_its_id_and_its_producer_fenced(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    name = new_name()
    with an_open_transaction(bootstrap, name, topic) as producer:
        assert ottla("transactions", "abort", name).code == 2
        done = ottla("transactions", "abort", name, "--yes")
        assert (done.code, done.err) == (0, "")
        assert ottla("consume", topic, "--committed").lines == []
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(20)
        assert refused.value.args[0].name() in ("_FENCED", "INVALID_PRODUCER_EPOCH")
    again = ottla("transactions", "abort", name, "--yes")
    assert (again.code, "Nothing is open" in again.out) == (0, True)


def test_a_transaction_that_is_under_way_does_not_hang(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    name = new_name()
    with an_open_transaction(bootstrap, name, topic) as producer:
        found = ottla("transactions", "find-hanging", "-t", topic, "--older-than", "0s")
        assert (found.code, found.out) == (0, "No transaction hangs.\n")
        place = ("--topic", topic, "--partition", "0", "--start-offset", "0")
        refused = ottla("transactions", "abort", *place, "--yes")
        assert refused.code == 1
        assert f"`ottla transactions abort {name}`" in refused.err
        producer.commit_transaction(20)
    assert ottla("consume", topic, "--committed").lines == ["in doubt"]


def test_a_hanging_transaction_is_found_and_ended(ottla, bootstrap: str, topic: str) -> None:
    leave_hanging(bootstrap, topic, timestamp_ms=1_767_225_600_000)
    assert ottla("produce", topic, "-p", "1", stdin="behind it\n").code == 0
    assert committed_end(bootstrap, topic, 1) == 0

    found = ottla("transactions", "find-hanging", "--json")
    assert found.code == 1
    (hanging,) = json.loads(found.out)
    assert (hanging["topic"], hanging["partition"]) == (topic, 1)
    assert hanging["transaction_start_offset"] == 0
    assert hanging["reason"] == "no coordinator knows its producer"
    told = ottla("transactions", "find-hanging", "-t", f"{topic}:0-2")
    fix = f"ottla transactions abort --topic {topic} --partition 1 --start-offset 0"
    assert (told.code, fix in told.err) == (1, True)

    assert ottla(*fix.split()[1:], "--yes").code == 0
    assert ottla("transactions", "find-hanging").code == 0
    assert ottla("consume", topic, "--committed").lines == ["behind it"]
    again = ottla(*fix.split()[1:], "--yes")
    assert (again.code, "no open transaction begins at offset 0" in again.err) == (1, True)


def test_what_was_written_lately_is_left_out(ottla, broker: Broker, topic: str) -> None:
    leave_hanging(broker.bootstrap_servers, topic, timestamp_ms=broker.clock.now_ms())
    assert ottla("transactions", "find-hanging", "-t", topic).code == 0
    assert ottla("transactions", "find-hanging", "-t", topic, "--older-than", "0s").code == 1
    place = ("--topic", topic, "--partition", "1", "--start-offset", "0")
    assert ottla("transactions", "abort", *place, "--yes", "--force").code == 0
