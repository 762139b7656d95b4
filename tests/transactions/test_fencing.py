"""A transactional id has one holder: whoever takes it over shuts the one before out."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from ottla.errors import ErrorCode
from ottla.testing import Broker
from support.requests import Place
from transactions.committed_reads import CommittedReader
from transactions.conftest import Stage
from transactions.raw_producer import FIRST, SECOND, Dialect, RawProducer, Refused

FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
GROUP = "tellers"

Deed = Callable[[RawProducer, Place], None]

DEEDS: dict[str, Deed] = {
    "write where it wrote before": lambda producer, place: void(producer.write(place, b"zombie")),
    "write elsewhere": lambda producer, place: void(producer.write((place[0], 1), b"zombie")),
    "commit": lambda producer, place: producer.commit(),
    "abort": lambda producer, place: producer.abort(),
    "commit offsets": lambda producer, place: producer.send_offsets(GROUP, {place: 7}),
}


def void(_: object) -> None:
    """What was done has an answer that nobody needs."""


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
@pytest.mark.parametrize("dialect", [FIRST, SECOND], ids=lambda one: one.name)
def test_a_zombie_can_do_nothing(stage: Stage, dialect: Dialect, deed: Deed) -> None:
    zombie = stage.producer(dialect)
    zombie.write(stage.places[0], b"of the dead")
    successor = stage.producer(dialect)
    successor.write(stage.places[0], b"alive")
    with pytest.raises(Refused) as refused:
        deed(zombie, stage.places[0])
    assert refused.value.code in FENCED
    successor.write(stage.places[1], b"alive")
    successor.send_offsets(GROUP, {stage.places[0]: 3})
    successor.commit()
    assert stage.committed() == [[b"alive"], [b"alive"]]
    assert stage.reader.group_offset(GROUP, stage.places[0]) == 3


def test_a_real_client_learns_that_it_was_fenced(
    broker: Broker, places: list[Place], reader: CommittedReader
) -> None:
    topic = places[0][0]
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "teller"}
    zombie, successor = Producer(settings), Producer(settings)
    zombie.init_transactions(20)
    zombie.begin_transaction()
    zombie.produce(topic, b"of the dead", partition=0)
    assert zombie.flush(20) == 0
    successor.init_transactions(20)
    with pytest.raises(KafkaException) as raised:
        zombie.commit_transaction(20)
    error = raised.value.args[0]
    assert error.fatal()
    assert error.code() in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED}
    successor.begin_transaction()
    successor.produce(topic, b"alive", partition=0)
    successor.commit_transaction(20)
    reader.wait_stable(*places)
    assert reader.read(places[0]).values == [b"alive"]


def test_ids_beside_each_other_do_not_disturb_each_other(stage: Stage) -> None:
    first = stage.producer(FIRST, name="one")
    second = stage.producer(SECOND, name="two")
    for producer in (first, second, first):
        producer.write(stage.places[0], producer.transactional_id.encode())
    second.commit()
    stable, _ = stage.reader.ends(stage.places[0])
    assert stable == 0, "what is committed waits for what is open before it"
    first.abort()
    stage.reader.wait_stable(*stage.places)
    assert stage.reader.read(stage.places[0]).values == [b"two"]
