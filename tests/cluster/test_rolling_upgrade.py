"""Brokers of an older program give way to the new one, one by one and under load: nothing is lost,
nobody's request fails, and no older broker is sent what it does not know.

The older program is `support/older_broker.py`. The order is Kafka's: the program first, then what
brokers say to each other, then the features that clients use.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

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
    wait_stable,
)
from ottla.clients.features import FeatureChange
from ottla.clients.topics import NewTopic
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.settings.protocol_level import LEVELS, TRANSACTION_FEATURE
from ottla.testing import Cluster
from ottla.testing.child import PROGRAM, BrokerFailedToStart
from ottla.testing.cluster import FAST_SETTINGS, Shape
from support import older_broker
from support.eventually import eventually
from support.older_broker import OLDER_LEVEL, UNKNOWN
from transactions.raw_producer import MessageConnection

pytestmark = pytest.mark.slow
OLDER_PROGRAM = (sys.executable, str(Path(older_broker.__file__)))
SETTING = "inter.broker.protocol.version"
NEWEST_LEVEL = LEVELS[-1].name
FEATURES = dict(LEVELS[-1].features)
TRANSACTION_TYPE, OFFSET_TYPE = 0, 1
BROKERS, PARTITIONS = range(3), range(3)
PLAIN, LEDGER = "plain", "ledger"
PAUSE_SECONDS = 0.02


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers of the older program."""
    require_zookeeper()
    settings = {**FAST_SETTINGS, SETTING: OLDER_LEVEL}
    shape = Shape(settings=settings, can_partition=False, program=OLDER_PROGRAM)
    with Cluster.of(shape) as started:
        with ottla.Admin(started.bootstrap_servers) as admin:
            for name in (PLAIN, LEDGER):
                (created,) = admin.create_topics(NewTopic(name, len(PARTITIONS)))
                assert created.error is None
        started.wait_until_in_sync()
        yield started


class Load:
    """What clients do the whole time. Each loop says what it achieved, and fails at any error."""

    def __init__(self, cluster: Cluster) -> None:
        self._servers = cluster.bootstrap_servers
        self._group = coordinated_by(cluster, BROKERS[0], GROUP)
        self._transactional_id = coordinated_by(cluster, BROKERS[0], TRANSACTION)
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work,))
            for work in (self._write, self._transact, self._read)
        ]
        self.failures: list[BaseException] = []
        self.written: list[bytes] = []
        self.committed: list[bytes] = []
        self.read: list[bytes] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        try:
            # One after another: Python 3.11 cannot rewrite the modules they import at once.
            for number, thread in enumerate(self._threads):
                thread.start()
                eventually(
                    lambda number=number: bool(self.failures or self._counts()[number]),
                    "a client's first success",
                    timeout_seconds=PATIENCE_SECONDS,
                )
            yield
        finally:
            self._ends.set()
            for thread in filter(threading.Thread.is_alive, self._threads):
                thread.join(2 * PATIENCE_SECONDS)
                assert not thread.is_alive(), "a client hangs"
        assert not self.failures, self.failures

    def goes_on(self) -> None:
        """Returns when every client has come further."""
        before = self._counts()
        for _ in range(int(PATIENCE_SECONDS / 0.1)):
            assert not self.failures, self.failures
            if all(now > then + 5 for now, then in zip(self._counts(), before, strict=True)):
                return
            self._ends.wait(0.1)
        raise AssertionError(f"the clients stand still: {before}, {self._counts()}")

    def _counts(self) -> list[int]:
        return [len(self.written), len(self.committed), len(self.read)]

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failures.append(error)

    def _write(self) -> None:
        """librdkafka's idempotent producer."""
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "delivery.timeout.ms": int(PATIENCE_SECONDS * 1000),
                "log_level": 0,
            }
        )

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            if error is not None:
                self.failures.append(RuntimeError(str(error)))
            else:
                self.written.append(message.value() or b"")

        for number in itertools.count():
            if self._ends.wait(PAUSE_SECONDS):
                break
            producer.produce(PLAIN, f"{number}".encode(), on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def _transact(self) -> None:
        """Ottla's own, in transactions over all partitions; every fifth by a new producer."""
        numbers = itertools.count()
        while not self._ends.is_set():
            with ottla.Producer(self._servers, transactional_id=self._transactional_id) as producer:
                for _ in range(5):
                    value = f"{next(numbers)}".encode()
                    producer.begin_transaction()
                    for each in PARTITIONS:
                        producer.send(LEDGER, value, partition=each)
                    producer.commit_transaction()
                    self.committed.append(value)
                    self._ends.wait(PAUSE_SECONDS)

    def _read(self) -> None:
        """A member of a group that commits what it has read."""
        with ottla.Consumer(
            PLAIN,
            bootstrap_servers=self._servers,
            group_id=self._group,
            auto_offset_reset="earliest",
        ) as consumer:
            while not self._ends.is_set():
                records = consumer.poll(0.2)
                self.read += [bytes(record.value or b"") for record in records]
                if records:
                    consumer.commit()

    def check(self, cluster: Cluster) -> None:
        """What was acknowledged is there once, and nothing else."""
        wait_stable(cluster, LEDGER, PARTITIONS)
        for values in committed_values(cluster, LEDGER, PARTITIONS):
            assert values == self.committed
        stored = [value for each in committed_values(cluster, PLAIN, PARTITIONS) for value in each]
        assert sorted(stored) == sorted(self.written)
        assert set(self.read) <= set(stored)


def coordinated_by(cluster: Cluster, broker: int, kind: int) -> str:
    """A name that falls to a broker: the first to be upgraded has something to write down."""
    names = (f"name-{number}" for number in range(100))
    return next(name for name in names if coordinator_of(cluster, kind, name) == broker)


def upgrade(
    cluster: Cluster, broker: int, load: Load, level: str, program: Sequence[str] = PROGRAM
) -> None:
    """Stops a broker in order, and lets the new program go on with its data at some level."""
    assert cluster.stop(broker) == 0
    start(cluster, broker, program, level)
    cluster.wait_until_in_sync()
    load.goes_on()


def start(cluster: Cluster, broker: int, program: Sequence[str], level: str) -> None:
    child = cluster.brokers[broker]
    child.program, child.settings[SETTING] = program, level
    cluster.start_brokers([broker])


def lead_all(admin: ottla.Admin, load: Load) -> None:
    """Every broker leads its share again: old ones follow new ones, and new ones old ones."""
    admin.elect_leaders()
    load.goes_on()


def unknown_lines(cluster: Cluster) -> list[str]:
    """What older brokers said they did not know."""
    return [
        line
        for broker in cluster.brokers
        for line in broker.log_path.read_text(errors="replace").splitlines()
        if UNKNOWN in line
    ]


def versions_written(cluster: Cluster, topic: str, record_type: int) -> set[int]:
    """The versions of the values that coordinators have written, of one type of record."""
    with ottla.Admin(cluster.bootstrap_servers) as admin:
        places = [
            TopicPartition(topic, each.partition) for each in admin.describe_topic(topic).partitions
        ]
    found = set()
    with ottla.Consumer(
        bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(*places)
        while any(consumer.position(each) < ends[each] for each in places):
            records = consumer.poll(PATIENCE_SECONDS)
            assert records, f"{topic} cannot be read to its end"
            for record in records:
                key, value = bytes(record.key or b""), record.value
                if value is not None and int.from_bytes(key[:2], "big") == record_type:
                    found.add(int.from_bytes(bytes(value)[:2], "big"))
    return found


def levels_told(admin: ottla.Admin, broker: int) -> dict[str, int]:
    """The features that a broker says the cluster has."""
    found = admin.describe_features(broker).by_name.values()
    return {each.name: each.level for each in found if each.level}


def test_a_cluster_is_upgraded_under_load_and_does_not_go_back(cluster: Cluster) -> None:
    load = Load(cluster)
    with load.running(), ottla.Admin(cluster.bootstrap_servers) as admin:
        load.goes_on()
        change_the_programs(cluster, admin, load)
        assert unknown_lines(cluster) == []
        assert versions_written(cluster, "__transaction_state", TRANSACTION_TYPE) == {0}
        assert versions_written(cluster, "__consumer_offsets", OFFSET_TYPE) == {3}
        raise_the_level(cluster, admin, load)
        assert 1 in versions_written(cluster, "__transaction_state", TRANSACTION_TYPE)
        assert 4 in versions_written(cluster, "__consumer_offsets", OFFSET_TYPE)
        try_to_go_back(cluster, admin)
        load.goes_on()
    load.check(cluster)


def change_the_programs(cluster: Cluster, admin: ottla.Admin, load: Load) -> None:
    """One broker after the other runs the new program and speaks as the old ones do."""
    assert cluster.stop(0) == 0
    with pytest.raises(
        BrokerFailedToStart, match=r"4\.3 cannot be spoken: broker [12] runs a prog"
    ):
        start(cluster, 0, PROGRAM, NEWEST_LEVEL)
    start(cluster, 0, PROGRAM, OLDER_LEVEL)
    cluster.wait_until_in_sync()
    ask_the_older_controller(cluster)
    lead_all(admin, load)
    # It goes back once: what it wrote as a coordinator is then for older programs to read.
    upgrade(cluster, 0, load, OLDER_LEVEL, OLDER_PROGRAM)
    for broker in BROKERS:
        lead_all(admin, load)
        upgrade(cluster, broker, load, OLDER_LEVEL)


def ask_the_older_controller(cluster: Cluster) -> None:
    """A client's request in a version that the controller does not know is passed on in one that
    it does."""
    assert cluster.controller() != 0
    connection = MessageConnection(cluster.brokers[0].bootstrap_servers)
    request = CreateTopicsRequest([CreatableTopic("made-by-an-older-controller", 1, 3)])
    version = older_broker.NEWEST_VERSIONS["CREATE_TOPICS"] + 1
    try:
        answer = connection.exchange(request, version, CreateTopicsResponse)
    finally:
        connection.close()
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE]
    cluster.wait_until_in_sync()


def raise_the_level(cluster: Cluster, admin: ottla.Admin, load: Load) -> None:
    """First what brokers say to each other, then the features that clients use."""
    assert all(levels_told(admin, broker) == {} for broker in BROKERS)
    for broker in BROKERS:
        with pytest.raises(RequestFailed, match=r"broker \d can have 0 at most"):
            admin.update_features(FEATURES)
        upgrade(cluster, broker, load, NEWEST_LEVEL)
    admin.update_features(FEATURES)
    eventually(
        lambda: all(levels_told(admin, broker) == FEATURES for broker in BROKERS),
        "word of the features",
    )
    lead_all(admin, load)


def try_to_go_back(cluster: Cluster, admin: ottla.Admin) -> None:
    """Nothing of what was raised is lowered, and who does not know it cannot join."""
    with pytest.raises(RequestFailed, match="no level is ever lowered"):
        admin.update_features({TRANSACTION_FEATURE: 0}, change=FeatureChange.UNSAFE_DOWNGRADE)
    assert cluster.stop(2) == 0
    with pytest.raises(BrokerFailedToStart, match=r"speaks 4\.3 already, and cannot go back"):
        start(cluster, 2, PROGRAM, OLDER_LEVEL)
    with pytest.raises(BrokerFailedToStart, match=r"speaks a newer version \(level 2\) than this"):
        start(cluster, 2, OLDER_PROGRAM, OLDER_LEVEL)
    start(cluster, 2, PROGRAM, NEWEST_LEVEL)
    cluster.wait_until_in_sync()
