"""Money moves between accounts while everything that can go wrong does: none is made or lost."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.protocol.api import ApiKey
from support.broker_process import BrokerProcess
from support.eventually import eventually
from support.proxy import Proxy
from support.requests import a_topic
from support.wire import Connection
from transactions.bank import PARTITIONS, Auditor, Journal, Leg, legs_of, opening_legs
from transactions.child_process import ChildProgram
from transactions.raw_producer import MessageConnection, RawProducer, transaction_state
from transactions.transfer_writer import FENCED_EXIT

TOPIC = "accounts"
SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
SEEDS = (2025,)
COMMITS_THAT_SHOW_PROGRESS = 3


class Writer:
    """The holder of one transactional id: whichever process that is at the moment."""

    def __init__(self, kind: str, number: int, bootstrap: str, folder: Path) -> None:
        self.kind = kind
        self.transactional_id = f"{kind}-{number}"
        self._bootstrap = bootstrap
        self._folder = folder
        self._starts = 0
        self.journal = folder / f"{self.transactional_id}.journal"
        self.process = self._start()

    def _start(self) -> ChildProgram:
        self._starts += 1
        arguments = [self.kind, self._bootstrap, self.transactional_id, TOPIC, str(self.journal)]
        log = self._folder / f"{self.transactional_id}.log"
        return ChildProgram("transfer_writer.py", [*arguments, str(self._starts)], log)

    def take_over(self) -> ChildProgram:
        """Start another process with the same id; returns the one before."""
        before, self.process = self.process, self._start()
        return before

    def wait_progress(self) -> None:
        """Wait for some more commits; a process that was fenced has a successor."""
        wanted = Journal.committed_count(self.journal) + COMMITS_THAT_SHOW_PROGRESS

        def has_progressed() -> bool:
            if not self.process.is_running:
                assert self.process.exit_code() == FENCED_EXIT, self.process.last_words()
                self.take_over()
            return Journal.committed_count(self.journal) >= wanted

        eventually(has_progressed, f"progress of {self.transactional_id}")


class Bank:
    """A broker behind a proxy, writers that go through it, and an auditor who does not."""

    def __init__(self, broker: BrokerProcess, proxy: Proxy, folder: Path, seed: int) -> None:
        self.broker = broker
        self.proxy = proxy
        self.random = Random(seed)
        self.coordinator = MessageConnection(broker.bootstrap_servers)
        with Connection(broker.bootstrap_servers) as connection:
            a_topic(connection, TOPIC, partitions=PARTITIONS)
        self._open_accounts()
        kinds = ("confluent", "confluent", "raw", "raw")
        self.writers = [
            Writer(kind, number, proxy.bootstrap_servers, folder)
            for number, kind in enumerate(kinds)
        ]
        self.auditor = Auditor(broker.bootstrap_servers, TOPIC, folder)

    def _open_accounts(self) -> None:
        founder = RawProducer(self.broker.bootstrap_servers, "founder")
        founder.init()
        for leg in opening_legs():
            founder.write((TOPIC, leg.partition), leg.encode())
        founder.commit()
        founder.close()

    def pick(self, kind: str = "") -> Writer:
        return self.random.choice([one for one in self.writers if kind in one.kind])

    def wait_progress(self) -> None:
        for writer in self.writers:
            writer.wait_progress()

    def close(self) -> None:
        for writer in self.writers:
            if writer.process.is_running:
                writer.process.kill()
        self.auditor.close()
        self.coordinator.close()


def kill_the_broker(bank: Bank) -> None:
    bank.broker.restart()


def kill_a_writer(bank: Bank) -> None:
    bank.pick().take_over().kill()


def take_over_from_a_living_writer(bank: Bank) -> None:
    zombie = bank.pick().take_over()
    assert zombie.exit_code() == FENCED_EXIT, zombie.last_words()


def take_over_from_a_frozen_writer(bank: Bank) -> None:
    writer = bank.pick()
    writer.process.freeze()
    zombie = writer.take_over()
    writer.wait_progress()
    zombie.thaw()
    assert zombie.exit_code() == FENCED_EXIT, zombie.last_words()


def hold_past_the_time_out(bank: Bank, api_key: ApiKey) -> None:
    """The request arrives when the coordinator has already given the transaction up."""
    writer = bank.pick("confluent")
    hold = bank.proxy.hold(api_key, containing=writer.transactional_id.encode())
    hold.wait_arrived()
    eventually(
        lambda: transaction_state(bank.coordinator, writer.transactional_id) == "CompleteAbort",
        "the time-out of a transaction whose request is held",
    )
    hold.release()


def hold_past_the_next_transactions(bank: Bank, api_key: ApiKey, kind: str) -> None:
    """The client takes it for lost, sends it again elsewhere, and goes on; then it arrives."""
    writer = bank.pick(kind)
    hold = bank.proxy.hold(api_key, containing=writer.transactional_id.encode())
    hold.wait_arrived()
    hold.hang_up()
    writer.wait_progress()
    hold.release()


TROUBLES: tuple[Callable[[Bank], None], ...] = (
    kill_the_broker,
    kill_a_writer,
    lambda bank: hold_past_the_time_out(bank, ApiKey.END_TXN),
    lambda bank: hold_past_the_next_transactions(bank, ApiKey.END_TXN, "raw"),
    take_over_from_a_living_writer,
    kill_the_broker,
    lambda bank: hold_past_the_time_out(bank, ApiKey.PRODUCE),
    lambda bank: hold_past_the_next_transactions(bank, ApiKey.PRODUCE, "raw"),
    take_over_from_a_frozen_writer,
    lambda bank: hold_past_the_next_transactions(bank, ApiKey.PRODUCE, "confluent"),
    kill_a_writer,
    kill_the_broker,
)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_money_is_made_or_lost(
    own_broker: Callable[..., BrokerProcess], proxy: Proxy, tmp_path: Path, seed: int
) -> None:
    print(f"seed {seed}")
    # Clients are told of the proxy's address only; the auditor knows the broker's own.
    advertised = f"PLAINTEXT://{proxy.bootstrap_servers}"
    broker = own_broker(settings={**SETTINGS, "advertised.listeners": advertised})
    proxy.upstream = broker.bootstrap_servers
    bank = Bank(broker, proxy, tmp_path, seed)
    try:
        troubles = list(TROUBLES)
        bank.random.shuffle(troubles)
        for make_trouble in troubles:
            bank.wait_progress()
            make_trouble(bank)
            bank.auditor.audit()
        bank.wait_progress()
        check_the_end(bank)
    finally:
        bank.close()


def check_the_end(bank: Bank) -> None:
    for writer in bank.writers:
        assert writer.process.stop() in (0, FENCED_EXIT), writer.process.last_words()
    bank.auditor.wait_unlocked()
    seen = bank.auditor.audit()
    transfers = {name for name in seen if legs_of(name) == 2}
    known = Journal.read(bank.writers[0].journal.parent)
    assert known["committed"] <= transfers <= known["committed"] | known["begun"]
    assert known["aborted"], "some transfers were to be aborted"
    assert confluent_reading(bank) == seen


def confluent_reading(bank: Bank) -> dict[str, int]:
    """The same reading by a real client."""
    consumer = Consumer(
        {
            "bootstrap.servers": bank.proxy.bootstrap_servers,
            "group.id": "auditors",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    seen: dict[str, int] = {}
    ended: set[int] = set()

    def read_on() -> bool:
        for message in consumer.consume(500, timeout=0.2):
            if message.error():
                ended.add(message.partition())
            else:
                transfer = Leg.decode(message.value()).transfer
                seen[transfer] = seen.get(transfer, 0) + 1
        return len(ended) == PARTITIONS

    eventually(read_on, "the ends of all partitions")
    consumer.close()
    return seen
