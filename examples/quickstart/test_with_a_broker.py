"""A broker in your own tests: `pytest examples/quickstart/test_with_a_broker.py`.

`ottla_broker` is a fixture of the pytest plugin in Ottla: a real broker on a free port,
new for each test, gone after it.
"""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Broker


def orders_in(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count"})
    _, end = consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=10)
    consumer.close()
    return int(end)


def place_order(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce("orders", b"one coffee")
    assert producer.flush(30) == 0


def test_an_order_is_stored(ottla_broker: Broker) -> None:
    place_order(ottla_broker.bootstrap_servers)
    assert orders_in(ottla_broker.bootstrap_servers) == 1


def test_an_order_survives_a_restart(ottla_broker: Broker) -> None:
    place_order(ottla_broker.bootstrap_servers)
    ottla_broker.restart()
    assert orders_in(ottla_broker.bootstrap_servers) == 1


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"])
def test_an_order_is_placed_once_although_the_broker_fails_twice(
    ottla_broker: Broker, error: str
) -> None:
    ottla_broker.faults.fail("Produce", error, times=2)
    place_order(ottla_broker.bootstrap_servers)
    assert orders_in(ottla_broker.bootstrap_servers) == 1
