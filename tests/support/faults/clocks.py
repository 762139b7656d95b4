"""Brokers whose clocks are an hour apart: what is open on one moves to another."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, Producer

from ottla import Admin
from ottla.clients.offsets import LATEST
from ottla.clients.topics import NewTopic
from ottla.coordination.partitioning import partition_of
from ottla.errors import OttlaError
from support import shifted_broker
from support.eventually import eventually
from support.faults.stage import Stage

HOUR_MS = 3_600_000
AHEAD, RIGHT = (0, 1), 2
TRANSACTIONS, OFFSETS = "__transaction_state", "__consumer_offsets"
LONG_MS, SHORT_MS = 60_000, 3_000
CALL_SECONDS_MAX = 60.0
UNLOCK_SECONDS_MAX = SHORT_MS / 1000 + 20.0


def set_clocks_apart(stage: Stage) -> None:
    """Two brokers are an hour ahead of the third; coordinators move there and back."""
    for broker in AHEAD:
        stage.cluster.stop(broker)
        program = (sys.executable, str(Path(shifted_broker.__file__)), str(HOUR_MS))
        stage.cluster.brokers[broker].program = program
        stage.cluster.start_brokers([broker])
        stage.cluster.wait_until_in_sync()
    ledger = f"{stage.load.topic}-ledger"
    with Admin(stage.cluster.bootstrap_servers) as admin:
        (created,) = admin.create_topics(NewTopic(ledger, 1, 3))
        assert created.error is None, created.error
    with Member(stage) as member:
        _move_ahead(stage, ledger, member)
    _move_behind(stage, ledger)


def _move_ahead(stage: Stage, ledger: str, member: Member) -> None:
    """To whom an hour seems to have passed: what is open has not had its time."""
    name = _name_led_by(stage, TRANSACTIONS, [RIGHT])
    producer = _open_transaction(stage, ledger, name, LONG_MS)
    before = member.id()
    stage.cluster.stop(RIGHT)
    stage.go_on()
    producer.commit_transaction(CALL_SECONDS_MAX)
    assert member.id() == before, "a member was taken for dead"
    stage.cluster.start_brokers([RIGHT])
    stage.cluster.wait_until_in_sync()


def _move_behind(stage: Stage, ledger: str) -> None:
    """To whom it seems to begin in an hour: it has its time and no more."""
    name = _name_led_by(stage, TRANSACTIONS, [AHEAD[0], RIGHT])
    _open_transaction(stage, ledger, name, SHORT_MS)
    stage.cluster.stop(AHEAD[0])
    eventually(
        lambda: _is_unlocked(stage, ledger),
        "the end of a transaction that nobody ends",
        timeout_seconds=UNLOCK_SECONDS_MAX,
    )
    stage.cluster.start_brokers([AHEAD[0]])


def _open_transaction(stage: Stage, topic: str, name: str, timeout_ms: int) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": stage.cluster.bootstrap_servers,
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "log_level": 0,
        }
    )
    producer.init_transactions(CALL_SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(topic, name.encode(), partition=0)
    assert producer.flush(CALL_SECONDS_MAX) == 0
    return producer


def _is_unlocked(stage: Stage, topic: str) -> bool:
    with Admin(stage.cluster.bootstrap_servers) as admin:
        end = admin.list_offsets(topic, {0: LATEST})
        stable = admin.list_offsets(topic, {0: LATEST}, committed_only=True)
    return end[0].offset == stable[0].offset


def _name_led_by(stage: Stage, topic: str, brokers: list[int]) -> str:
    """A name whose coordinator is the first of these, and then the next."""
    with Admin(stage.cluster.bootstrap_servers) as admin:
        if topic not in {each.name for each in admin.list_topics(internal=True)}:
            _open_transaction(stage, f"{stage.load.topic}-ledger", "first", SHORT_MS)
        admin.elect_leaders()
        rows = admin.wait_for_topic(topic).partitions
    names = (f"{stage.load.topic}-{number}" for number in range(10_000))
    name = next(
        name
        for name in names
        if list(rows[partition_of(name, len(rows))].replicas[: len(brokers)]) == brokers
    )
    row = partition_of(name, len(rows))
    assert stage.cluster.leader_of(topic, row) == brokers[0]
    return name


class Member:
    """A member of a group whose coordinator's clock is right; use as a context."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._group = _name_led_by(stage, OFFSETS, [RIGHT])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Member:
        self._thread.start()
        eventually(self._ids, "a member", timeout_seconds=CALL_SECONDS_MAX)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.set()
        self._thread.join(CALL_SECONDS_MAX)

    def id(self) -> str:
        """Who the coordinator says is in the group: one, and always the same."""
        (found,) = eventually(self._ids, "a member", timeout_seconds=CALL_SECONDS_MAX)
        return found

    def _ids(self) -> list[str]:
        try:
            with Admin(self._stage.cluster.bootstrap_servers) as admin:
                described = admin.describe_group(self._group)
        except OttlaError:
            return []
        return [member.id for member in described.members]

    def _poll(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._stage.cluster.bootstrap_servers,
                "group.id": self._group,
                "session.timeout.ms": 30_000,
                "log_level": 0,
            }
        )
        consumer.subscribe([self._stage.load.topic])
        while not self._ends.is_set():
            consumer.poll(0.1)
        consumer.close()
