"""kill -9 in the middle of a produce load, fifty times: nothing acknowledged is lost or doubled."""

from collections.abc import Callable
from random import Random

import pytest
from confluent_kafka import KafkaError, Message, Producer

from support.broker_process import BrokerProcess
from support.clients.confluent import ConfluentClient
from support.eventually import eventually
from support.requests import a_topic
from support.wire import Connection
from support.writer import Writer, whole_log

OwnBroker = Callable[..., BrokerProcess]

SEEDS = (11, 22, 33, 44)
KILLS_PER_SEED = 10
KILLS_UNDER_A_REAL_CLIENT = 10
PARTITIONS = 2
ACKNOWLEDGED_BEFORE_A_KILL_MAX = 1_500


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_records_survive_kill_9(own_broker: OwnBroker, seed: int) -> None:
    print(f"seed {seed}")
    random, broker = Random(seed), own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "loaded", partitions=PARTITIONS, segment_bytes="1048576")
    writers = [
        Writer(f"{kind}-{partition}", (topic, partition), Random(seed + partition), idempotent)
        for partition in range(PARTITIONS)
        for kind, idempotent in (("plain", False), ("sequenced", True))
    ]
    for _ in range(KILLS_PER_SEED):
        run_until_killed(broker, writers, random.randint(1, ACKNOWLEDGED_BEFORE_A_KILL_MAX))
        broker.start()
        check_everything(broker, writers)
    for writer in writers:
        writer.start(broker.bootstrap_servers)
        writer.finish()
    check_everything(broker, writers)


def run_until_killed(broker: BrokerProcess, writers: list[Writer], records: int) -> None:
    """Load the broker until so many more records are acknowledged, then kill it under the load."""
    already = sum(len(writer.acknowledged) for writer in writers)
    for writer in writers:
        writer.start(broker.bootstrap_servers)
    eventually(
        lambda: sum(len(writer.acknowledged) for writer in writers) >= already + records,
        f"{records} acknowledged records",
    )
    broker.kill()
    for writer in writers:
        writer.join()


def check_everything(broker: BrokerProcess, writers: list[Writer]) -> None:
    logs = {place: whole_log(broker.bootstrap_servers, place) for place in places_of(writers)}
    for writer in writers:
        writer.check(logs[writer.place])


def places_of(writers: list[Writer]) -> set[tuple[str, int]]:
    return {writer.place for writer in writers}


@pytest.mark.slow
def test_an_idempotent_client_delivers_exactly_once_through_ten_kills(
    own_broker: OwnBroker,
) -> None:
    broker, random = own_broker(), Random(55)
    client, topic = ConfluentClient(broker.bootstrap_servers), "through-kills"
    client.create_topic(topic, partitions=PARTITIONS)
    acknowledged: dict[tuple[int, int], bytes] = {}
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            acknowledged[message.partition(), message.offset()] = message.value()

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 1,
            "message.timeout.ms": 120_000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
        }
    )
    sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]

    def send_some() -> int:
        for partition, own in enumerate(sent):
            for _ in range(20):
                own.append(b"%d" % len(own))
                producer.produce(topic, own[-1], partition=partition, on_delivery=delivered)
        producer.poll(0)
        return len(acknowledged)

    for _ in range(KILLS_UNDER_A_REAL_CLIENT):
        wanted = len(acknowledged) + random.randint(1, ACKNOWLEDGED_BEFORE_A_KILL_MAX)
        eventually(lambda wanted=wanted: send_some() >= wanted, "acknowledgements")
        broker.restart()
    assert producer.flush(60) == 0
    assert failures == []
    for partition, own in enumerate(sent):
        log = whole_log(broker.bootstrap_servers, (topic, partition))
        assert [record.value for record in log] == own, "in order and exactly once"
        mine = {at: value for (part, at), value in acknowledged.items() if part == partition}
        assert mine == {record.offset: record.value for record in log}
