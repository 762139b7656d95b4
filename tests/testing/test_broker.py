"""The broker that test suites start: real clients, a clock that turns, trouble to order."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from ottla import aio
from ottla.errors import ErrorCode
from ottla.testing import Broker, BrokerFailedToStart, ChildBroker
from support.eventually import eventually

QUIET = {"log_level": 0}


def a_producer(broker: Broker, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET, **settings})


def an_admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})


def produce(broker: Broker, topic: str, *values: bytes) -> None:
    producer = a_producer(broker)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def watermarks(broker: Broker, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "w", **QUIET})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), 20)
        return found
    finally:
        consumer.close()


def test_the_fixture_is_a_broker_that_clients_use(ottla_broker: Broker) -> None:
    produce(ottla_broker, "greetings", b"hello")
    assert watermarks(ottla_broker, "greetings") == (0, 1)


def test_two_brokers_live_side_by_side() -> None:
    with Broker() as one, Broker() as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        produce(one, "t", b"1")
        assert "t" not in an_admin(other).list_topics(timeout=5).topics


def test_a_broker_that_runs_is_not_started_again(ottla_broker: Broker) -> None:
    with pytest.raises(RuntimeError, match="restart"):
        ottla_broker.start()
    produce(ottla_broker, "still", b"there")


def test_data_outlives_a_restart_on_the_same_port(ottla_broker: Broker) -> None:
    produce(ottla_broker, "kept", b"1", b"2")
    address = ottla_broker.bootstrap_servers
    ottla_broker.restart()
    assert ottla_broker.bootstrap_servers == address
    assert watermarks(ottla_broker, "kept") == (0, 2)


def test_nothing_is_left_of_a_closed_broker() -> None:
    with Broker() as broker:
        data = broker.data
        assert data.is_dir()
    assert not data.exists()


def test_given_data_is_kept(tmp_path: pathlib.Path) -> None:
    with Broker(data=tmp_path) as broker:
        produce(broker, "t", b"1")
    with Broker(data=tmp_path) as broker:
        assert watermarks(broker, "t") == (0, 1)


def test_an_unknown_setting_is_refused_with_its_name() -> None:
    with pytest.raises(Exception, match=r"log\.retention\.hour"):
        Broker(settings={"log.retention.hour": "1"}).start()


def test_advancing_the_clock_makes_retention_happen_now(ottla_broker: Broker) -> None:
    admin = an_admin(ottla_broker)
    topic = NewTopic("short", 1, 1, config={"retention.ms": "60000"})
    admin.create_topics([topic])["short"].result(30)
    produce(ottla_broker, "short", b"old")
    ottla_broker.clock.advance(hours=1)
    eventually(lambda: watermarks(ottla_broker, "short") == (1, 1), "the old record goes")


def test_advancing_the_clock_ends_the_session_of_a_silent_member(ottla_broker: Broker) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap_servers,
            "group.id": "sleepy",
            "session.timeout.ms": 45000,
            "heartbeat.interval.ms": 40000,
            **QUIET,
        }
    )
    produce(ottla_broker, "t", b"1")
    consumer.subscribe(["t"])
    eventually(lambda: consumer.poll(0.1) or bool(consumer.assignment()), "it joins")
    admin = an_admin(ottla_broker)

    def members() -> int:
        return len(admin.describe_consumer_groups(["sleepy"])["sleepy"].result(30).members)

    assert members() == 1
    ottla_broker.clock.advance(seconds=46)
    eventually(lambda: members() == 0, "its session ends")
    consumer.close()


def test_the_clock_does_not_go_back(ottla_broker: Broker) -> None:
    with pytest.raises(ValueError, match="zero or more"):
        ottla_broker.clock.advance(seconds=-1)


def test_a_clock_can_be_turned_before_its_broker_starts() -> None:
    broker = Broker()
    before_ms = broker.clock.now_ms()
    broker.clock.advance(hours=1)
    with broker:
        assert broker.clock.now_ms() >= before_ms + 3_600_000


def test_a_broker_lives_and_ends_inside_a_running_loop() -> None:
    async def use_one() -> pathlib.Path:
        with Broker() as broker:
            async with aio.Producer(broker.bootstrap_servers) as producer:
                await (await producer.send("t", b"1"))
            return broker.data

    assert not asyncio.run(use_one()).exists()


def test_the_data_of_a_broker_that_nobody_closed_goes_with_the_process() -> None:
    forgetful = "from ottla.testing import Broker; b = Broker(); b.start(); print(b.data)"
    done = subprocess.run([sys.executable, "-c", forgetful], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not pathlib.Path(done.stdout.strip()).exists()


def test_settings_may_be_numbers() -> None:
    with Broker(settings={"num.partitions": 6}) as broker:  # type: ignore[dict-item]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        admin.create_topics([NewTopic("six")])["six"].result(10)
        assert len(admin.list_topics("six", 10).topics["six"].partitions) == 6


def test_a_failure_to_order_is_seen_by_the_client_as_often_as_ordered(
    ottla_broker: Broker,
) -> None:
    admin = an_admin(ottla_broker)
    ottla_broker.faults.fail("CreateTopics", "POLICY_VIOLATION", times=2)
    for _ in range(2):
        with pytest.raises(KafkaException) as refused:
            admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)


def test_a_retriable_failure_is_survived_without_a_duplicate(ottla_broker: Broker) -> None:
    produce(ottla_broker, "t", b"0")
    ottla_broker.faults.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3)
    producer = a_producer(ottla_broker, **{"enable.idempotence": True, "retry.backoff.ms": 10})
    producer.produce("t", b"1")
    assert producer.flush(30) == 0
    assert watermarks(ottla_broker, "t") == (0, 2)


def test_a_dropped_connection_is_survived(ottla_broker: Broker) -> None:
    produce(ottla_broker, "t", b"0")
    ottla_broker.faults.drop("Produce")
    producer = a_producer(ottla_broker, **{"enable.idempotence": True})
    producer.produce("t", b"1")
    assert producer.flush(30) == 0
    assert watermarks(ottla_broker, "t") == (0, 2)


def test_a_delay_makes_the_client_time_out(ottla_broker: Broker) -> None:
    admin = an_admin(ottla_broker)
    ottla_broker.faults.delay("DescribeConfigs", seconds=30)
    resource = ConfigResource(ResourceType.BROKER, "1")
    with pytest.raises(KafkaException):
        admin.describe_configs([resource], request_timeout=0.5)[resource].result(30)


def test_orders_can_be_taken_back(ottla_broker: Broker) -> None:
    ottla_broker.faults.fail("CreateTopics", "POLICY_VIOLATION", times=100)
    ottla_broker.faults.clear()
    admin = an_admin(ottla_broker)
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)


@pytest.mark.parametrize("name", ["Produce", "produce", "PRODUCE", "create_topics", "CreateTopics"])
def test_apis_are_known_by_any_spelling_of_their_name(ottla_broker: Broker, name: str) -> None:
    ottla_broker.faults.fail(name, "POLICY_VIOLATION")


def test_an_api_that_does_not_exist_cannot_fail(ottla_broker: Broker) -> None:
    with pytest.raises(ValueError, match="Producer"):
        ottla_broker.faults.fail("Producer", "POLICY_VIOLATION")


def test_an_error_that_does_not_exist_cannot_be_ordered(ottla_broker: Broker) -> None:
    with pytest.raises(ValueError, match="NO_LEADER"):
        ottla_broker.faults.fail("Produce", "NO_LEADER")


def test_a_delay_is_not_negative(ottla_broker: Broker) -> None:
    with pytest.raises(ValueError, match="zero or more"):
        ottla_broker.faults.delay("Fetch", seconds=-1)


def test_a_child_broker_is_killed_and_comes_back_with_its_data() -> None:
    with ChildBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        producer.produce("t", b"1")
        assert producer.flush(30) == 0
        first = broker.pid
        broker.kill()
        broker.start()
        assert broker.pid != first
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "w", **QUIET}
        )
        assert consumer.get_watermark_offsets(TopicPartition("t", 0), 10) == (0, 1)
        consumer.close()


def test_a_child_that_cannot_start_says_why() -> None:
    with pytest.raises(BrokerFailedToStart, match=r"num\.partitions"):
        ChildBroker(settings={"num.partitions": "none"}).start()
