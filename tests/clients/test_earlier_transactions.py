"""Transactions in the first version of the protocol, for clusters that know no other."""

from collections.abc import Iterator

import pytest

import ottla
from ottla.clients.producer import transaction
from ottla.testing import Broker

WAIT_S = 30.0


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setattr(transaction, "_SECOND_VERSION", 99)  # no cluster is so new
    with Broker() as started:
        yield started


def test_records_and_offsets_are_committed_or_not(broker: Broker) -> None:
    place = ottla.TopicPartition("t", 0)
    with ottla.Producer(broker.bootstrap_servers, transactional_id="name") as producer:
        for number in range(3):
            with producer.transaction():
                producer.send("t", b"good %d" % number)
                producer.send_offsets({place: number + 1}, "group")
            producer.begin_transaction()
            producer.send("t", b"bad").result(WAIT_S)
            producer.send_offsets({place: 99}, "group")
            producer.abort_transaction()
    with (
        ottla.Admin(broker.bootstrap_servers) as admin,
        ottla.Consumer(
            bootstrap_servers=broker.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        consumer.assign([place])
        values: list[bytes] = []
        while len(values) < 3:
            values += [record.value for record in consumer.poll(WAIT_S)]
        values += [record.value for record in consumer.poll(0.2)]
        committed = admin.list_group_offsets("group")[place].offset

    assert values == [b"good 0", b"good 1", b"good 2"]
    assert committed == 3


def test_after_a_refused_record_the_next_transaction_goes_on(broker: Broker) -> None:
    with ottla.Producer(broker.bootstrap_servers, transactional_id="name") as producer:
        with producer.transaction():
            producer.send("t", b"one")
        producer.begin_transaction()
        broker.faults.fail("Produce", "INVALID_RECORD")
        assert producer.send("t", b"refused").exception(WAIT_S) is not None
        producer.abort_transaction()
        with producer.transaction():
            after = producer.send("t", b"two")

    assert after.result(0).offset > 0
