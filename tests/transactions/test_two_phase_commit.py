"""A topic and an outside database commit together: the transaction waits for its owner.

The owner prepares: it writes to the topic, notes the transaction's producer id and epoch in the
database's own transaction, and commits that. That commit is the decision; the topic follows it,
at once or after any restart of the owner or the broker.
"""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.errors import ErrorCode
from ottla.testing import Broker
from support.broker_process import BrokerProcess
from support.requests import Place, a_topic
from support.wire import Connection
from transactions.committed_reads import CommittedReader
from transactions.conftest import FEW_SHARDS
from transactions.raw_producer import FIRST, SECOND, Dialect, RawProducer, Refused

SETTINGS = {**FEW_SHARDS, "transaction.two.phase.commit.enable": "true"}
PLACE: Place = ("orders", 0)
TRANSACTIONAL_ID = "order-desk"

both_versions = pytest.mark.parametrize("dialect", [FIRST, SECOND], ids=lambda one: one.name)


class OrderDesk:
    """An owner that keeps orders in SQLite and tells of them in a topic."""

    def __init__(self, bootstrap: str, database: Path, dialect: Dialect = SECOND) -> None:
        self.database = sqlite3.connect(database)
        self.database.execute("CREATE TABLE IF NOT EXISTS orders (name TEXT)")
        self.database.execute("CREATE TABLE IF NOT EXISTS prepared (producer_id INT, epoch INT)")
        self.database.commit()
        self.producer = RawProducer(bootstrap, TRANSACTIONAL_ID, dialect)

    def start(self) -> bool | None:
        """Take the id over; end what was prepared. Returns whether it was committed, if there."""
        answer = self.producer.init(two_phase=True, keep_prepared=True)
        if answer.ongoing_txn_producer_id < 0:
            return None
        kept = (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch)
        decided = kept in self.database.execute("SELECT * FROM prepared").fetchall()
        if decided:
            self.producer.commit()
        else:
            self.producer.abort()
        return decided

    def prepare(self, order: str) -> None:
        """Write on both sides; neither shows it yet."""
        self.producer.write(PLACE, order.encode())
        self.database.execute("DELETE FROM prepared")
        self.database.execute("INSERT INTO prepared VALUES (?, ?)", self.producer.pair)
        self.database.execute("INSERT INTO orders VALUES (?)", (order,))

    def decide(self) -> None:
        """The moment at which the order exists."""
        self.database.commit()

    def follow(self) -> None:
        self.producer.commit()

    def crash(self) -> None:
        """Forget everything that is not on a disk or in the broker."""
        self.database.close()
        self.producer.close()

    def orders(self) -> list[bytes]:
        return [name.encode() for (name,) in self.database.execute("SELECT name FROM orders")]


@pytest.fixture
def desks() -> Iterator[list[OrderDesk]]:
    made: list[OrderDesk] = []
    yield made
    for desk in made:
        desk.crash()


@pytest.mark.parametrize("kills_broker", [False, True], ids=["owner only", "broker too"])
def test_topic_and_database_agree_after_a_crash_at_any_step(
    own_broker: Callable[..., BrokerProcess],
    tmp_path: Path,
    desks: list[OrderDesk],
    kills_broker: bool,
) -> None:
    broker = own_broker(settings=SETTINGS)
    with Connection(broker.bootstrap_servers) as connection:
        a_topic(connection, PLACE[0])
    reader = CommittedReader(broker.bootstrap_servers)
    for steps_done, expected in enumerate([None, False, True, None]):
        desk = OrderDesk(broker.bootstrap_servers, tmp_path / "orders.db")
        desks.append(desk)
        desk.start()
        steps = (lambda desk=desk: desk.prepare(f"order {len(desk.orders())}"), desk.decide)
        for step in (*steps, desk.follow)[:steps_done]:
            step()
        desk.crash()
        if kills_broker:
            broker.restart()
        successor = OrderDesk(broker.bootstrap_servers, tmp_path / "orders.db")
        desks.append(successor)
        assert successor.start() is expected
        reader.wait_stable(PLACE)
        assert reader.read(PLACE).values == successor.orders()
        successor.crash()
    assert len(reader.read(PLACE).values) == 2, "the two that were decided"
    reader.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as started:
        with Connection(started.bootstrap_servers) as connection:
            a_topic(connection, PLACE[0], partitions=2)
        yield started


@both_versions
def test_a_prepared_transaction_outlives_any_time_out(
    broker: Broker,
    reader: CommittedReader,
    tmp_path: Path,
    desks: list[OrderDesk],
    dialect: Dialect,
) -> None:
    desk = OrderDesk(broker.bootstrap_servers, tmp_path / "orders.db", dialect)
    desks.append(desk)
    desk.start()
    desk.prepare("late")
    broker.clock.advance(hours=30)
    broker.restart()
    broker.clock.advance(hours=30)
    assert desk.producer.state() == "Ongoing"
    desk.decide()
    desk.crash()
    successor = OrderDesk(broker.bootstrap_servers, tmp_path / "orders.db", dialect)
    desks.append(successor)
    assert successor.start() is True
    reader.wait_stable(PLACE)
    assert reader.read(PLACE).values == [b"late"]


def test_the_owner_before_cannot_end_what_was_kept_for_its_successor(
    broker: Broker, reader: CommittedReader, tmp_path: Path, desks: list[OrderDesk]
) -> None:
    zombie = OrderDesk(broker.bootstrap_servers, tmp_path / "zombie.db")
    zombie.start()
    zombie.prepare("undecided")
    successor = OrderDesk(broker.bootstrap_servers, tmp_path / "orders.db")
    desks += [zombie, successor]
    successor.producer.init(two_phase=True, keep_prepared=True)
    elsewhere = (PLACE[0], 1)
    for deed in (
        zombie.follow,
        zombie.producer.abort,
        lambda: zombie.producer.write(elsewhere, b"more"),
    ):
        with pytest.raises(Refused) as refused:
            deed()
        assert refused.value.code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
    successor.producer.abort()
    reader.wait_stable(PLACE)
    assert reader.read(PLACE).values == []
    successor.producer.write(PLACE, b"next")
    successor.producer.commit()
    reader.wait_stable(PLACE)
    assert reader.read(PLACE).values == [b"next"]


def test_an_operator_may_forbid_it(tmp_path: Path) -> None:
    with Broker(settings=FEW_SHARDS) as forbidding:
        producer = RawProducer(forbidding.bootstrap_servers, TRANSACTIONAL_ID)
        with pytest.raises(Refused) as refused:
            producer.init(two_phase=True)
        assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        producer.close()
