"""`ottla groups` while real consumers come and go."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Broker
from support.command_line import Ottla, ottla_here
from support.eventually import eventually

POLL_SECONDS = 0.1


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker that lets a group begin at once, unless an outside one is tested."""
    outside = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if outside:
        yield outside
        return
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def ottla(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    """The command line in this process: these tests give many short commands."""
    return ottla_here(bootstrap, monkeypatch)


def fill(bootstrap: str, topic: str, count: int, *, first_timestamp_ms: int | None = None) -> None:
    """Writes `count` records to each of the three partitions."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(3):
        for number in range(count):
            when = {} if first_timestamp_ms is None else {"timestamp": first_timestamp_ms + number}
            producer.produce(topic, value=str(number), partition=partition, **when)
    assert producer.flush(20) == 0


def commit(bootstrap: str, group: str, topic: str, offset: int, metadata: str = "") -> None:
    """Commits the offset in all three partitions without joining the group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition(topic, n, offset, metadata) for n in range(3)]
    committed = consumer.commit(offsets=places, asynchronous=False)
    assert all(each.error is None for each in committed)
    consumer.close()


@contextmanager
def a_member(bootstrap: str, group: str, topic: str, **settings: object) -> Iterator[Consumer]:
    """A consumer that owns all three partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "a-client",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])

    def owns_all() -> bool:
        consumer.poll(POLL_SECONDS)
        return len(consumer.assignment()) == 3

    try:
        eventually(owns_all, "an assignment", timeout_seconds=60)
        yield consumer
    finally:
        consumer.close()


def offsets_of(ottla, group: str) -> dict[int, int]:
    """What the group has committed, by partition."""
    exported = ottla("groups", "export", group, "--json")
    assert exported.code == 0, exported.err
    return {row["partition"]: row["offset"] for row in json.loads(exported.out)["offsets"]}


def test_a_group_is_listed_described_and_deleted(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    fill(bootstrap, topic, 5)
    with a_member(bootstrap, group, topic) as consumer:
        places = [TopicPartition(topic, n, 2) for n in range(3)]
        consumer.commit(offsets=places, asynchronous=False)

        listed = {row["group"]: row for row in json.loads(ottla("groups", "list", "--json").out)}
        assert (listed[group]["type"], listed[group]["state"]) == ("classic", "Stable")
        stable = ottla("groups", "list", "--state", "stable").lines
        assert group in [line.split("\t")[0] for line in stable]
        empty = ottla("groups", "list", "--state", "Empty").lines
        assert group not in [line.split("\t")[0] for line in empty]

        (described,) = json.loads(ottla("groups", "describe", group, "--json").out)
        assert f"{described['coordinator']['host']}:{described['coordinator']['port']}" == bootstrap
        (member,) = described["members"]
        assert (member["client_id"], member["host"]) == ("a-client", "127.0.0.1")
        assert member["subscription"] == [topic]
        assert [row["partition"] for row in member["assigned"]] == [0, 1, 2]
        assert described["lag"] == 9
        assert [row["lag"] for row in described["partitions"]] == [3, 3, 3]
        assert {row["client_id"] for row in described["partitions"]} == {"a-client"}

        text = ottla("groups", "describe", group)
        assert f"{topic}:0,1,2" in text.out
        assert "state        Stable" in text.out

        refused = ottla("groups", "delete", group, "--yes")
        assert refused.code == 1
        assert "stop its consumers first" in refused.err
    assert ottla("groups", "delete", group, "--yes").out == f"Deleted group {group}.\n"
    assert ottla("groups", "delete", group, "--yes").code == 1
    assert ottla("groups", "delete", group, "--yes", "--if-exists").code == 0


def test_a_group_of_the_newer_protocol_is_described(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    fill(bootstrap, topic, 4)
    with a_member(bootstrap, group, topic, **{"group.protocol": "consumer"}) as consumer:
        places = [TopicPartition(topic, n, 1) for n in range(3)]
        consumer.commit(offsets=places, asynchronous=False)
        (described,) = json.loads(ottla("groups", "describe", group, "--json").out)
        assert (described["type"], described["lag"]) == ("consumer", 9)
        (member,) = described["members"]
        assert member["epoch"] >= 1
        assert [row["partition"] for row in member["assigned"]] == [0, 1, 2]
        consumers = ottla("groups", "list", "--type", "consumer").lines
        assert group in [line.split("\t")[0] for line in consumers]
        refused = ottla("groups", "reset", group, "--all-topics", "--to", "latest", "--yes")
        assert (refused.code, "active member" in refused.err) == (1, True)
    done = ottla("groups", "reset", group, "--all-topics", "--to", "latest", "--yes")
    assert done.code == 0, done.err
    assert offsets_of(ottla, group) == {0: 4, 1: 4, 2: 4}


def test_lag_counts_what_is_still_to_be_read(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    one, two = new_name(), new_name()
    fill(bootstrap, topic, 10)
    commit(bootstrap, one, topic, 4)
    commit(bootstrap, two, topic, 10)

    shown = ottla("groups", "lag", one, two)
    rows = [line.split("\t") for line in shown.lines[1:]]
    assert [row[5] for row in rows] == ["6", "6", "6", "0", "0", "0"]
    assert "18 records behind in 3 partitions" in shown.err

    totals = ottla("groups", "lag", one, "--total").lines
    assert totals[1].split("\t") == [one, topic, "3", "18"]
    (only,) = json.loads(ottla("groups", "lag", one, "-t", f"{topic}:1", "--json").out)
    assert only["lag"] == 6
    assert one in ottla("groups", "lag").out


def test_lag_can_be_watched(ottla, bootstrap: str, topic: str, new_name: Callable[[], str]) -> None:
    group = new_name()
    fill(bootstrap, topic, 10)
    commit(bootstrap, group, topic, 4)
    watched = ottla("groups", "lag", group, "--watch", "--interval", "0.05", "--times", "2")
    assert watched.code == 0
    names, first, second = (line.split("\t") for line in watched.lines)
    assert names[3] == "lag"
    assert first[1:] == [group, topic, "18", "-", "-", "-"]
    assert second[1:] == [group, topic, "18", "0", "0", "never"]
    lines = ottla("groups", "lag", group, "-w", "--times", "1", "--json").lines
    assert [json.loads(line)["groups"][0]["lag"] for line in lines] == [18]


@pytest.mark.parametrize(
    "case",
    [
        ("--to", "earliest", 0),
        ("--to", "latest", 10),
        ("--to", "7", 7),
        ("--to", "offset 7", 7),
        ("--to", "99", 10),
        ("--to", "-2", 8),
        ("--to", "@1767225600003", 3),
        ("--to", "2026-01-01T00:00:00.005Z", 5),
        ("--shift", "3", 7),
        ("--shift", "-100", 0),
    ],
    ids=lambda case: " ".join(case[:2]),
)
def test_a_group_goes_on_where_it_is_told(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str], case: tuple[str, str, int]
) -> None:
    group, (*where, expected) = new_name(), case
    fill(bootstrap, topic, 10, first_timestamp_ms=1_767_225_600_000)
    commit(bootstrap, group, topic, 4)

    planned = ottla("groups", "reset", group, "-t", f"{topic}:0,2", *where, "--dry-run")
    assert planned.code == 0
    rows = [line.split("\t") for line in planned.lines[1:]]
    assert [row[:4] for row in rows] == [
        [topic, "0", "4", str(expected)],
        [topic, "2", "4", str(expected)],
    ]
    assert offsets_of(ottla, group) == {0: 4, 1: 4, 2: 4}

    assert ottla("groups", "reset", group, "-t", f"{topic}:0,2", *where, "--yes").code == 0
    assert offsets_of(ottla, group) == {0: expected, 1: 4, 2: expected}


def test_a_consumer_goes_on_where_its_group_was_reset_to(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    fill(bootstrap, topic, 10)
    commit(bootstrap, group, topic, 10)
    assert ottla("groups", "reset", group, "-t", topic, "--shift", "-1", "-y").code == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.subscribe([topic])
    seen: list[tuple[int, int]] = []

    def has_read_three() -> bool:
        message = consumer.poll(POLL_SECONDS)
        if message is not None and message.error() is None:
            seen.append((message.partition(), message.offset()))
        return len(seen) == 3

    try:
        eventually(has_read_three, "three records", timeout_seconds=60)
    finally:
        consumer.close()
    assert sorted(seen) == [(0, 9), (1, 9), (2, 9)]


def test_an_active_group_is_not_reset(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    fill(bootstrap, topic, 3)
    with a_member(bootstrap, group, topic) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        for how in ("--yes", "--dry-run"):
            refused = ottla("groups", "reset", group, "-t", topic, "--to", "latest", how)
            assert refused.code == 1
            assert refused.lines[0].startswith("topic\tpartition")
            assert "has an active member" in refused.err
            assert f"`ottla groups describe {group}`" in refused.err
        assert offsets_of(ottla, group) == {0: 1}


def test_nothing_is_reset_without_consent(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    commit(bootstrap, group, topic, 0)
    fill(bootstrap, topic, 2)
    asked = ottla("groups", "reset", group, "-t", topic, "--to", "latest")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert len(asked.lines) == 4
    assert offsets_of(ottla, group) == {0: 0, 1: 0, 2: 0}


def test_a_new_group_is_made_only_when_asked(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    fill(bootstrap, topic, 2)
    command = ("groups", "reset", group, "-t", topic, "--to", "latest", "--yes")
    refused = ottla(*command)
    assert (refused.code, "--create" in refused.err) == (1, True)
    assert ottla(*command, "--create").code == 0
    assert offsets_of(ottla, group) == {0: 2, 1: 2, 2: 2}
    for words in (("describe",), ("lag",), ("export",)):
        unknown = ottla("groups", *words, "never-there")
        assert (unknown.code, "there is no group 'never-there'" in unknown.err) == (1, True)


@pytest.mark.parametrize("format_name", ["csv", "json"])
def test_offsets_go_from_one_group_to_another_by_file(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str], format_name: str
) -> None:
    old, new = new_name(), new_name()
    fill(bootstrap, topic, 6)
    commit(bootstrap, old, topic, 3, metadata="by hand")
    file = ottla("groups", "export", old, "--format", format_name).out

    assert ottla("groups", "import", new, "-", "--create", "--dry-run", stdin=file).code == 0
    assert ottla("groups", "describe", new).code == 1
    assert ottla("groups", "import", new, "-", "--create", "--yes", stdin=file).code == 0
    assert offsets_of(ottla, new) == {0: 3, 1: 3, 2: 3}
    (first, *_) = json.loads(ottla("groups", "export", new, "--json").out)["offsets"]
    # confluent-kafka sends the zero at the end of its string too
    assert first["metadata"].rstrip("\0") == ("by hand" if format_name == "json" else "")

    commit(bootstrap, new, topic, 0)
    some = ("-t", f"{topic}:1", "--from-file", "-")
    assert ottla("groups", "reset", new, *some, "--yes", stdin=file).code == 0
    assert offsets_of(ottla, new) == {0: 0, 1: 3, 2: 0}


def test_a_file_about_what_is_not_there_changes_nothing(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    commit(bootstrap, group, topic, 0)
    for lines, code, words in (
        (f"{topic},0,1\n{topic},99,1\n", 1, "partition 99"),
        ("never-there,0,1\n", 1, "never-there"),
        (f"{topic},zero,1\n", 2, "line 1"),
        ("", 2, "no offsets"),
    ):
        refused = ottla("groups", "import", group, "-", "--yes", stdin=lines)
        assert (refused.code, words in refused.err) == (code, True), refused.err
    assert offsets_of(ottla, group) == {0: 0, 1: 0, 2: 0}


def test_offsets_of_one_topic_can_be_forgotten(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    commit(bootstrap, group, topic, 0)
    forgotten = ottla("groups", "delete", group, "--topic", f"{topic}:1-2", "--yes")
    assert forgotten.out == f"Deleted 2 offsets of group {group}.\n"
    assert offsets_of(ottla, group) == {0: 0}


def test_offsets_of_a_deleted_topic_are_still_shown(
    ottla, bootstrap: str, topic: str, new_name: Callable[[], str]
) -> None:
    group, other = new_name(), new_name()
    assert ottla("topics", "create", other, "-p", "3").code == 0
    commit(bootstrap, group, topic, 0)
    commit(bootstrap, group, other, 0)
    assert ottla("topics", "delete", other, "--yes").code == 0
    (shown,) = json.loads(ottla("groups", "lag", group, "--json").out)
    assert [row["lag"] for row in shown["partitions"] if row["topic"] == topic] == [0, 0, 0]
    assert {row["end_offset"] for row in shown["partitions"] if row["topic"] == other} <= {None}
