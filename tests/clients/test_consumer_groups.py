"""Consumers in groups: sharing, moving, committing, in every protocol and with other libraries."""

import asyncio
import re
import time
from collections.abc import Callable, Collection

import pytest

import ottla
import ottla.aio
from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.failures import CommitRefused, Fenced, WrongUse
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition
from support.clients.aio import AioKafkaClient

WAIT_S = 40.0
NewName = Callable[[], str]
QUICK = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 10_000,
    "retry_backoff_ms": 20,
}
STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
PROTOCOLS = [
    *({"partition_assignment_strategy": name} for name in STRATEGIES),
    {"group_protocol": "consumer"},
]


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    AioKafkaClient(bootstrap).create_topic(name, partitions=4)
    return name


def produce(bootstrap: str, topic: str, count: int) -> None:
    with ottla.Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % 4)


def until(condition: Callable[[], bool], *consumers: ottla.Consumer) -> None:
    """Polls all in turn until the condition holds."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        for consumer in consumers:
            consumer.poll(0.05)
        assert time.monotonic() < deadline, [each.assignment for each in consumers]


class Diary:
    """Writes down what a listener hears."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int]] = []

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.entries.append(("assigned", len(partitions)))

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.entries.append(("revoked", len(partitions)))

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.entries.append(("lost", len(partitions)))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_two_members_share_and_the_one_that_stays_gets_all(
    bootstrap: str, topic: str, new_name: NewName, protocol: dict[str, str]
) -> None:
    group = new_name()
    how = {"bootstrap_servers": bootstrap, "group_id": group, **QUICK, **protocol}
    with ottla.Consumer(topic, **how) as first:
        until(lambda: len(first.assignment) == 4, first)
        with ottla.Consumer(topic, **how) as second:
            until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)
            assert not first.assignment & second.assignment
        until(lambda: len(first.assignment) == 4, first)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_a_group_goes_on_where_it_stopped(
    bootstrap: str, topic: str, new_name: NewName, protocol: dict[str, str]
) -> None:
    produce(bootstrap, topic, 100)
    how = {"bootstrap_servers": bootstrap, "group_id": new_name(), **QUICK, **protocol}
    seen: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    while len(seen) < 100:
        with ottla.Consumer(topic, **how) as consumer:
            seen += [record.value for record in consumer.poll(WAIT_S, max_records=30)]
        assert time.monotonic() < deadline

    assert sorted(seen) == sorted(b"%d" % number for number in range(100))


def test_commits_are_what_the_group_remembers(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    produce(bootstrap, topic, 40)
    place = TopicPartition(topic, 2)
    heard: list[object] = []
    how = {"bootstrap_servers": bootstrap, "group_id": new_name(), "enable_auto_commit": False}
    with ottla.Consumer(topic, **how, **QUICK) as consumer:
        until(lambda: consumer.metrics().records_returned == 40, consumer)
        assert consumer.committed(place) == {}
        consumer.commit()
        assert consumer.committed(place)[place].offset == 10
        consumer.commit({place: OffsetAndMetadata(4, "note")})
        assert consumer.committed(place)[place].metadata == "note"
        consumer.commit_async({place: 5}, lambda offsets, error: heard.append(error))
        until(lambda: bool(heard), consumer)
        assert heard == [None]
        assert consumer.committed(place)[place].offset == 5


def test_the_listener_hears_in_the_polling_thread_and_may_commit(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    produce(bootstrap, topic, 40)
    group = new_name()
    diary = Diary()
    how = {"bootstrap_servers": bootstrap, "group_id": group, "enable_auto_commit": False, **QUICK}
    consumer = ottla.Consumer(**how)

    class Committing(Diary):
        def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
            consumer.commit()
            diary.on_revoked(partitions)

        def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
            diary.on_assigned(partitions)

    with consumer:
        consumer.subscribe([topic], Committing())
        until(lambda: consumer.metrics().records_returned == 40, consumer)
    with ottla.Consumer(**how) as other:
        found = other.committed(*(TopicPartition(topic, n) for n in range(4)))

    assert diary.entries == [("assigned", 4), ("revoked", 4)]
    assert [at.offset for at in found.values()] == [10] * 4


def test_cooperative_members_keep_reading_what_they_keep(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    diary = Diary()
    strategy = {"partition_assignment_strategy": "cooperative-sticky"}
    how = {"bootstrap_servers": bootstrap, "group_id": new_name(), **QUICK, **strategy}
    with ottla.Consumer(**how) as first:
        first.subscribe([topic], diary)
        until(lambda: len(first.assignment) == 4, first)
        with ottla.Consumer(topic, **how) as second:
            until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)

    assert diary.entries[0] == ("assigned", 4)
    assert ("revoked", 2) in diary.entries
    assert ("revoked", 4) not in diary.entries


def test_a_pattern_follows_the_topics(bootstrap: str, new_name: NewName) -> None:
    stem = new_name().replace("[", "").replace("]", "")
    AioKafkaClient(bootstrap).create_topic(f"{stem}-one")
    how = {"bootstrap_servers": bootstrap, "group_id": stem, "metadata_max_age_ms": 300, **QUICK}
    with ottla.Consumer(**how) as consumer:
        consumer.subscribe(re.compile(f"^{re.escape(stem)}-"))
        until(lambda: len(consumer.assignment) == 1, consumer)
        AioKafkaClient(bootstrap).create_topic(f"{stem}-two", partitions=2)
        until(lambda: len(consumer.assignment) == 3, consumer)


def test_the_broker_matches_a_pattern_and_follows_the_topics(
    bootstrap: str, new_name: NewName
) -> None:
    prefix, group = new_name(), new_name()
    client = AioKafkaClient(bootstrap)
    client.create_topic(f"{prefix}-one", partitions=2)
    client.create_topic(f"not-{prefix}-two", partitions=1)
    how = {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, "group_protocol": "consumer"}
    with ottla.Consumer(**how) as consumer:
        consumer.subscribe(ottla.SubscriptionPattern(f"{prefix}-.*"))
        until(lambda: len(consumer.assignment) == 2, consumer)
        client.create_topic(f"{prefix}-three", partitions=1)
        until(lambda: len(consumer.assignment) == 3, consumer)
        with ottla.Producer(bootstrap) as producer:
            producer.send(f"{prefix}-three", b"v")
        assert [record.value for record in consumer.poll(WAIT_S)] == [b"v"]
        consumer.subscribe([f"not-{prefix}-two"])
        wanted = {TopicPartition(f"not-{prefix}-two", 0)}
        until(lambda: consumer.assignment == wanted, consumer)


def test_a_pattern_that_is_none_is_told_and_the_classic_protocol_has_none(
    bootstrap: str, new_name: NewName
) -> None:
    how = {**QUICK, "bootstrap_servers": bootstrap, "group_id": new_name()}
    with ottla.Consumer(**how, group_protocol="consumer") as consumer:
        consumer.subscribe(ottla.SubscriptionPattern("broken-["))
        with pytest.raises(OttlaError) as caught:
            until(lambda: False, consumer)
        assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    with ottla.Consumer(**how) as consumer, pytest.raises(WrongUse, match="group_protocol"):
        consumer.subscribe(ottla.SubscriptionPattern("orders"))


@pytest.mark.parametrize("protocol", [{}, {"group_protocol": "consumer"}], ids=str)
def test_a_static_member_keeps_its_partitions_over_a_restart(
    bootstrap: str, topic: str, new_name: NewName, protocol: dict[str, str]
) -> None:
    how = {"bootstrap_servers": bootstrap, "group_id": new_name(), **QUICK, **protocol}
    with ottla.Consumer(topic, **how) as other:
        with ottla.Consumer(topic, group_instance_id="static", **how) as member:
            until(lambda: len(other.assignment) == len(member.assignment) == 2, other, member)
            before = member.assignment
        rebalances = other.metrics().rebalances
        with ottla.Consumer(topic, group_instance_id="static", **how) as again:
            until(lambda: len(again.assignment) == 2, again, other)
            assert again.assignment == before
            assert other.metrics().rebalances == rebalances


def test_two_with_one_static_name_cannot_both_stay(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    how = {"bootstrap_servers": bootstrap, "group_id": new_name(), **QUICK}
    with ottla.Consumer(topic, group_instance_id="one", **how) as first:
        until(lambda: len(first.assignment) == 4, first)
        with ottla.Consumer(topic, group_instance_id="one", **how) as second:
            until(lambda: len(second.assignment) == 4, second)
            with pytest.raises(Fenced, match="one"):
                until(lambda: False, first)


def test_a_member_that_does_not_poll_is_out(bootstrap: str, topic: str, new_name: NewName) -> None:
    how = {"bootstrap_servers": bootstrap, "group_id": new_name(), **QUICK}
    slow = ottla.Consumer(max_poll_interval_ms=1000, enable_auto_commit=False, **how)
    diary = Diary()
    slow.subscribe([topic], diary)
    with slow, ottla.Consumer(topic, **how) as other:
        until(lambda: len(slow.assignment) == 2, slow, other)
        until(lambda: len(other.assignment) == 4, other)
        diary.entries.append(("silent", 0))
        with pytest.raises(CommitRefused):
            slow.commit({TopicPartition(topic, 0): 1})
        until(lambda: diary.entries[-1] == ("assigned", 2), slow, other)

    assert ("lost", 2) in diary.entries


def test_one_group_with_another_library(bootstrap: str, topic: str, new_name: NewName) -> None:
    from aiokafka import AIOKafkaConsumer

    group = new_name()

    async def main() -> None:
        async with ottla.aio.Consumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy="sticky,roundrobin",
            **QUICK,
        ) as ours:
            theirs = AIOKafkaConsumer(
                topic, bootstrap_servers=bootstrap, group_id=group, heartbeat_interval_ms=200
            )
            await theirs.start()
            try:
                async with asyncio.timeout(WAIT_S):
                    while not (len(ours.assignment) == len(theirs.assignment()) == 2):
                        await ours.poll(0.1)
                        await theirs.getmany(timeout_ms=50)
            finally:
                await theirs.stop()

    asyncio.run(main())
