"""Groups and transactions on three brokers: coordinators move with the leaders of their topics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Protocol

import confluent_kafka
import pytest

import ottla
from cluster.conftest import require_zookeeper
from cluster.coordination import (
    GROUP,
    PATIENCE_SECONDS,
    TRANSACTION,
    committed_values,
    coordinator_of,
    named_by,
    wait_stable,
)
from ottla.clients.topics import NewTopic
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing import Cluster
from support.eventually import eventually
from transactions.raw_producer import FIRST, MessageConnection, RawProducer

pytestmark = pytest.mark.slow
PARTITIONS = range(3)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    require_zookeeper()
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with Cluster(brokers=3, settings=settings, can_partition=False) as started:
        yield started


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic of three partitions, led by three brokers; everything is well when a test begins."""
    name = f"ledger-{next(_numbers)}"
    cluster.start_brokers(
        number for number, broker in enumerate(cluster.brokers) if not broker.is_running
    )
    cluster.wait_until_in_sync()
    with ottla.Admin(cluster.bootstrap_servers) as admin:
        (created,) = admin.create_topics(NewTopic(name, len(PARTITIONS)))
    assert created.error is None
    cluster.wait_until_in_sync()
    return name


class Writer(Protocol):
    """A transactional producer."""

    def begin(self) -> None: ...
    def write(self, topic: str, value: bytes) -> None: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


class OttlaWriter:
    """Ottla's producer, which speaks the second version of the protocol."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = ottla.Producer(
            bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, topic: str, value: bytes) -> None:
        sent = [self._producer.send(topic, value, partition=each) for each in PARTITIONS]
        for each in sent:
            each.result(PATIENCE_SECONDS)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def close(self) -> None:
        self._producer.close()


class ConfluentWriter:
    """librdkafka, which speaks the first version."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(PATIENCE_SECONDS)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def write(self, topic: str, value: bytes) -> None:
        for each in PARTITIONS:
            self._producer.produce(topic, value, partition=each)
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_SECONDS)

    def close(self) -> None:
        pass


MakeWriter = Callable[..., Writer]
both_clients = pytest.mark.parametrize(
    "make_writer", [OttlaWriter, pytest.param(ConfluentWriter, marks=pytest.mark.long)]
)


def asked(cluster: Cluster, broker: int, kind: int, key: str) -> ErrorCode:
    """What a broker says when it is asked about a group or a transactional id."""
    connection = MessageConnection(cluster.brokers[broker].bootstrap_servers)
    try:
        if kind == GROUP:
            groups = connection.exchange(DescribeGroupsRequest([key]), 0, DescribeGroupsResponse)
            return ErrorCode(groups.groups[0].error_code)
        states = connection.exchange(
            DescribeTransactionsRequest([key]), 0, DescribeTransactionsResponse
        )
        return ErrorCode(states.transaction_states[0].error_code)
    finally:
        connection.close()


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_every_broker_names_the_same_coordinator_and_only_that_one_answers(
    cluster: Cluster, topic: str, kind: int
) -> None:
    del topic  # everything is in sync
    coordinators = set()
    for number in range(6):
        key = f"key {number}"
        chosen = coordinator_of(cluster, kind, key)
        coordinators.add(chosen)
        for broker in range(3):
            code = asked(cluster, broker, kind, key)
            assert (code is ErrorCode.NOT_COORDINATOR) == (broker != chosen)
    assert len(coordinators) > 1, "they are spread over the brokers"


@both_clients
def test_markers_reach_partitions_on_all_brokers(
    cluster: Cluster, topic: str, make_writer: MakeWriter
) -> None:
    assert {cluster.leader_of(topic, each) for each in PARTITIONS} == {0, 1, 2}
    writer = make_writer(cluster.bootstrap_servers, topic)
    expected = []
    for number in range(5):
        writer.begin()
        writer.write(topic, b"%d" % number)
        writer.commit()
        expected.append(b"%d" % number)
    writer.close()
    wait_stable(cluster, topic, PARTITIONS)
    assert committed_values(cluster, topic, PARTITIONS) == [expected] * len(PARTITIONS)


def test_records_of_a_partition_that_was_not_added_are_refused_wherever_it_is_led(
    cluster: Cluster, topic: str
) -> None:
    """By older producers, who add partitions beforehand: else nobody would ever end them."""
    coordinator = coordinator_of(cluster, TRANSACTION, topic)
    producer = RawProducer(cluster.brokers[coordinator].bootstrap_servers, topic, FIRST)
    producer.init()
    producer.add((topic, 0))
    for partition, code in ((0, ErrorCode.NONE), (1, ErrorCode.TRANSACTION_ABORTABLE)):
        leader = cluster.brokers[cluster.leader_of(topic, partition)]
        connection = MessageConnection(leader.bootstrap_servers)
        request = producer.produce_request((topic, partition), [(None, b"value")])
        answer = connection.exchange(request, FIRST.produce, ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == code
        connection.close()
    producer.abort()
    producer.close()
    wait_stable(cluster, topic, PARTITIONS)


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_coordinator_that_was_frozen_answers_nothing_when_another_has_taken_over(
    cluster: Cluster, topic: str, kind: int
) -> None:
    frozen = coordinator_of(cluster, kind, topic)
    others = [number for number in range(3) if number != frozen]
    assert asked(cluster, frozen, kind, topic) is not ErrorCode.NOT_COORDINATOR
    cluster.pause(frozen)
    try:
        eventually(
            lambda: all(named_by(cluster, each, kind, topic) in others for each in others),
            "another coordinator",
            timeout_seconds=PATIENCE_SECONDS,
        )
    finally:
        cluster.resume(frozen)
    assert asked(cluster, frozen, kind, topic) is ErrorCode.NOT_COORDINATOR


def before_writing(writer: Writer, topic: str, kill: Callable[[], None]) -> None:
    kill()
    writer.write(topic, b"first")
    writer.write(topic, b"second")
    writer.commit()


def while_open(writer: Writer, topic: str, kill: Callable[[], None]) -> None:
    writer.write(topic, b"first")
    kill()
    writer.write(topic, b"second")
    writer.commit()


def before_the_end(writer: Writer, topic: str, kill: Callable[[], None]) -> None:
    writer.write(topic, b"first")
    writer.write(topic, b"second")
    kill()
    writer.commit()


def after_the_answer(writer: Writer, topic: str, kill: Callable[[], None]) -> None:
    writer.write(topic, b"first")
    writer.write(topic, b"second")
    writer.commit()
    kill()


Story = Callable[[Writer, str, Callable[[], None]], None]


@both_clients
@pytest.mark.parametrize("story", [before_writing, while_open, before_the_end, after_the_answer])
def test_a_transaction_survives_the_death_of_its_coordinator(
    cluster: Cluster, topic: str, make_writer: MakeWriter, story: Story
) -> None:
    writer = make_writer(cluster.bootstrap_servers, topic)
    writer.begin()
    story(writer, topic, lambda: cluster.kill(coordinator_of(cluster, TRANSACTION, topic)))
    writer.begin()
    writer.write(topic, b"next")
    writer.commit()
    writer.close()
    wait_stable(cluster, topic, PARTITIONS)
    expected = [b"first", b"second", b"next"]
    assert committed_values(cluster, topic, PARTITIONS) == [expected] * len(PARTITIONS)


@both_clients
def test_an_abandoned_transaction_is_aborted_by_the_next_coordinator(
    cluster: Cluster, topic: str, make_writer: MakeWriter
) -> None:
    writer = make_writer(cluster.bootstrap_servers, topic, timeout_ms=2_000)
    writer.begin()
    writer.write(topic, b"abandoned")
    cluster.kill(coordinator_of(cluster, TRANSACTION, topic))
    wait_stable(cluster, topic, PARTITIONS)
    assert committed_values(cluster, topic, PARTITIONS) == [[]] * len(PARTITIONS)


def transaction_state(cluster: Cluster, transactional_id: str) -> str:
    with ottla.Admin(cluster.bootstrap_servers) as admin:
        return str(admin.describe_transaction(transactional_id).state)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["it returns", "it is deleted"])
def test_what_was_decided_is_finished_when_its_partition_returns_or_is_deleted(
    cluster: Cluster, topic: str, is_deleted: bool
) -> None:
    lonely = f"lonely-{topic}"
    coordinator = coordinator_of(cluster, TRANSACTION, topic)
    holder = (coordinator + 1) % 3
    with ottla.Admin(cluster.bootstrap_servers) as admin:
        (created,) = admin.create_topics(NewTopic(lonely, assignments={0: (holder,)}))
        assert created.error is None
    producer = ottla.Producer(cluster.bootstrap_servers, transactional_id=topic)
    producer.begin_transaction()
    producer.send(lonely, b"far", partition=0).result(PATIENCE_SECONDS)
    producer.send(topic, b"near", partition=0).result(PATIENCE_SECONDS)
    cluster.kill(holder)
    # The answer may come before its markers or, where the client has to ask twice, after them.
    ending = Thread(target=producer.commit_transaction, daemon=True)
    ending.start()
    eventually(
        lambda: transaction_state(cluster, topic) == "PrepareCommit",
        "the decision",
        timeout_seconds=PATIENCE_SECONDS,
    )
    wait_stable(cluster, topic, [0])
    if is_deleted:
        with ottla.Admin(cluster.bootstrap_servers) as admin:
            (outcome,) = admin.delete_topics(lonely)
            assert outcome.error is None
    else:
        # The decision outlives the coordinator that made it, too.
        cluster.kill(coordinator)
        cluster.start_brokers([coordinator, holder])
    eventually(
        lambda: transaction_state(cluster, topic) == "CompleteCommit",
        "the completion",
        timeout_seconds=PATIENCE_SECONDS,
    )
    ending.join(PATIENCE_SECONDS)
    producer.close()
    assert committed_values(cluster, topic, [0]) == [[b"near"]]
    if not is_deleted:
        assert committed_values(cluster, lonely, [0]) == [[b"far"]]


def test_committed_offsets_never_go_back_when_coordinators_die(
    cluster: Cluster, topic: str
) -> None:
    place = TopicPartition(topic, 0)
    group = f"readers of {topic}"
    with ottla.Producer(cluster.bootstrap_servers) as producer:
        for number in range(40):
            producer.send(topic, b"%d" % number, partition=0)
    with ottla.Consumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        seen = 0
        for _ in range(2):
            while seen < 10:
                seen += len(consumer.poll(1.0, max_records=2))
                consumer.commit()
            committed = consumer.committed(place)[place].offset
            coordinator = coordinator_of(cluster, GROUP, group)
            cluster.kill(coordinator)
            after = consumer.committed(place)[place].offset
            assert after >= committed
            consumer.commit({place: after + 1})
            assert consumer.committed(place)[place].offset == after + 1
            cluster.start_brokers([coordinator])
            cluster.wait_until_in_sync()
            seen = 0
