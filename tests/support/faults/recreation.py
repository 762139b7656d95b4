"""A topic that is deleted and created anew under its old name while a replica is away."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message, Producer

from ottla import Admin
from ottla.clients.topics import NewTopic
from ottla.model.ids import TopicPartition
from support.eventually import NeverHappened, eventually
from support.faults.load import copies_on_disk
from support.faults.moves import insist
from support.faults.stage import Stage
from support.writer import whole_log

ROUNDS = 2
RECORDS = 200
PARTITIONS = 2
FLUSH_SECONDS_MAX = 60.0


def recreate_without_a_replica(stage: Stage) -> None:
    """Whoever was away has another topic's log when it comes back, under the same name."""
    name = f"{stage.load.topic}-anew"
    _create(stage, name)
    _write(stage, name, 0)
    for life in range(1, ROUNDS + 1):
        away = stage.random.randrange(len(stage.cluster.brokers))
        stage.cluster.kill(away)
        _delete(stage, name)
        _create(stage, name)
        _write(stage, name, life)
        stage.cluster.start_brokers([away])
        _spread(stage, name)
        stage.cluster.wait_until_in_sync()
        _check(stage, name, life)
    _delete(stage, name)


def _create(stage: Stage, name: str) -> None:
    """On all brokers, or, where it is already known that one is away, on the others."""
    every = tuple(range(len(stage.cluster.brokers)))
    alive = tuple(number for number in every if stage.cluster.brokers[number].is_running)
    troubles: list[object] = []

    def is_created() -> bool:
        with Admin(stage.cluster.bootstrap_servers) as admin:
            for brokers in (every, alive):
                assignments = dict.fromkeys(range(PARTITIONS), brokers)
                (created,) = admin.create_topics(NewTopic(name, assignments=assignments))
                if created.error is None:
                    return True
                troubles.append(created.error)
        return False

    try:
        eventually(is_created, f"the creation of {name}", timeout_seconds=FLUSH_SECONDS_MAX)
    except NeverHappened as error:
        raise AssertionError(f"{name} cannot be created: {troubles[-2:]}") from error


def _spread(stage: Stage, name: str) -> None:
    """Gives every broker a replica: one that was away gets the log of a topic it does not know."""
    every = list(range(len(stage.cluster.brokers)))
    keys = [TopicPartition(name, partition) for partition in range(PARTITIONS)]
    refused = insist(stage, lambda admin: (admin.reassign_partitions(dict.fromkeys(keys, every)),))
    assert refused == ({},), refused

    def is_spread() -> bool:
        rows = insist(stage, lambda admin: admin.describe_topic(name)).partitions
        return all(sorted(row.in_sync) == every for row in rows)

    eventually(is_spread, f"{name} on every broker", timeout_seconds=FLUSH_SECONDS_MAX)


def _delete(stage: Stage, name: str) -> None:
    def is_gone() -> bool:
        with Admin(stage.cluster.bootstrap_servers) as admin:
            admin.delete_topics(name)
            return name not in {topic.name for topic in admin.list_topics()}

    eventually(is_gone, f"the deletion of {name}", timeout_seconds=FLUSH_SECONDS_MAX)


def _write(stage: Stage, name: str, life: int) -> None:
    """By a client of its own: librdkafka takes the lower epochs of a new topic for old news."""
    producer = Producer(
        {
            "bootstrap.servers": stage.cluster.bootstrap_servers,
            "enable.idempotence": True,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    for number in range(RECORDS):
        value = f"{life} {number}".encode()
        producer.produce(name, value, partition=number % PARTITIONS, on_delivery=delivered)
    assert producer.flush(FLUSH_SECONDS_MAX) == 0, "records are still under way"
    assert not failed, failed[:5]


def _check(stage: Stage, name: str, life: int) -> None:
    """Every replica has what was written in this life, and nothing of another."""
    for partition in range(PARTITIONS):
        expected = [f"{life} {number}" for number in range(partition, RECORDS, PARTITIONS)]
        leader = stage.cluster.leader_of(name, partition)
        address = stage.cluster.brokers[leader].bootstrap_servers
        values = [(each.value or b"").decode() for each in whole_log(address, (name, partition))]
        assert values == expected, f"life {life}, partition {partition}: {values[:5]}"
        copies = copies_on_disk(stage.cluster, name, partition)
        assert len(copies) == len(stage.cluster.brokers), sorted(copies)
        assert len(set(copies.values())) == 1, f"life {life}, partition {partition}: not equal"
