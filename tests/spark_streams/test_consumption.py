"""What a micro-batch used up: noted with its results, checked, gone on from, and purged."""

import asyncio
import dataclasses
from collections.abc import Callable

import pyarrow
import pytest

import ottla
from ottla.model.ids import TopicPartition
from ottla.spark.batch_commit import Load, Outcome, commit_batch
from ottla.spark.consumed import Consumed, OffsetsMoved
from ottla.spark.ledger import LedgerEntry
from ottla.spark.offset_ranges import OffsetRange
from ottla.spark.options import Use
from ottla.spark.sink_plan import Delivery, SinkPlan, sink_plan
from ottla.streams import StreamsBuilder, Topology
from ottla.streams.failures import TopologyError
from ottla.streams.spark import purge as purging
from ottla.streams.spark.consumption import Consumption
from ottla.streams.spark.data_source import _WRITTEN
from ottla.streams.spark.packets import input_packets, input_records
from ottla.streams.spark.purge import Purge
from ottla.streams.spark.resumption import Resuming, Resumption
from ottla.streams.spark.run_settings import RunSettings
from ottla.streams.spark.topics import prepare_topics
from spark.topics import make_topic

NewName = Callable[[], str]


def read(offsets: list[int]) -> pyarrow.RecordBatch:
    """What the connector reads, as far as packets look at it."""
    count = len(offsets)
    times = pyarrow.array([7000] * count, pyarrow.timestamp("us", tz="UTC"))
    return pyarrow.RecordBatch.from_pydict(
        {
            "key": [b"k"] * count,
            "value": [b"v"] * count,
            "timestamp": times,
            "offset": offsets,
            "headers": pyarrow.nulls(count),
        }
    )


@pytest.mark.parametrize("batches", [[], [[]], [[11, 12]], [[11], [], [13, 15]]])
def test_packets_cover_their_range_whatever_records_are_in_it(batches: list[list[int]]) -> None:
    whole = OffsetRange(TopicPartition("t", 3), 10, 20)
    rows = [packet.to_pylist()[0] for packet in input_packets(whole, map(read, batches))]
    assert [row["offset"] for row in rows] == [10, *(row["next_offset"] for row in rows[:-1])]
    assert rows[-1]["next_offset"] == 20
    records = [record for row in rows for record in input_records(row["records"])]
    assert [record.offset for record in records] == [each for some in batches for each in some]
    assert {(record.key, record.timestamp_ms) for record in records} <= {(b"k", 7)}


def test_ranges_of_a_partition_become_one_and_survive_being_told() -> None:
    told, heard = Consumption(), Consumption()
    assert told.text() is None
    for start, end in ((5, 9), (3, 5), (7, 7)):
        told.add(OffsetRange(TopicPartition("t", 0), start, end))
    told.add(OffsetRange(TopicPartition("empty", 0), 4, 4))
    heard.add_text(told.text() or "")
    assert heard.ranges == {TopicPartition("t", 0): (3, 9)}


class World:
    """An application's names in a cluster, and micro-batches without Spark."""

    def __init__(self, bootstrap: str, new_name: NewName) -> None:
        self.bootstrap = bootstrap
        self.app_id = new_name()
        self.source = make_topic(bootstrap, new_name(), 2)
        builder = StreamsBuilder(value="str")
        counted = builder.stream(self.source).group_by_key().count(store="counts")
        counted.to_stream().to(make_topic(bootstrap, new_name()))
        self.topology: Topology = builder.build()
        self.settings = RunSettings(self.app_id, "nowhere", {"bootstrap.servers": bootstrap})
        with ottla.Admin(bootstrap) as admin:
            self.counts = prepare_topics(self.topology, self.app_id, admin)

    @property
    def plan(self) -> SinkPlan:
        options = {
            "kafka.bootstrap.servers": self.bootstrap,
            "transactionalId": f"{self.app_id}-0",
        }
        return sink_plan(Use.STREAM_WRITE, options, _WRITTEN)

    def commit(self, start: int, end: int, *, query: str = "q", batch_id: int = 0) -> Outcome:
        """A micro-batch that used up [start, end) of partition 0 and wrote nothing."""
        entry = LedgerEntry(f"{self.app_id}-0", query, batch_id)
        consumed = Consumed(self.app_id, {TopicPartition(self.source, 0): (start, end)})
        return asyncio.run(commit_batch(self.plan, Load(entry.group, (), entry, consumed)))

    def resume(self, delivery: Delivery = Delivery.EXACTLY_ONCE) -> Resumption:
        settings = dataclasses.replace(self.settings, delivery=delivery)
        resuming = Resuming(self.topology, settings, self.counts)
        return resuming.find(self.topology.subtopologies[0])

    def log(self, *values: bytes, is_commit: bool) -> None:
        """Writes to the changelog, in a transaction of its own."""
        with ottla.Producer(self.bootstrap, transactional_id=f"{self.app_id}-other") as producer:
            producer.begin_transaction()
            for value in values:
                producer.send(f"{self.app_id}-counts-changelog", value, key=b"k", partition=1)
            producer.flush()
            if is_commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()


@pytest.fixture
def world(bootstrap: str, new_name: NewName) -> World:
    return World(bootstrap, new_name)


def test_offsets_are_committed_with_the_micro_batch_and_once(world: World) -> None:
    assert world.commit(0, 4) is Outcome.WRITTEN
    assert world.commit(4, 9, batch_id=1) is Outcome.WRITTEN
    assert world.commit(4, 9, batch_id=1) is Outcome.WAS_WRITTEN
    with ottla.Admin(world.bootstrap) as admin:
        committed = admin.list_group_offsets(world.app_id)
    assert {where: one.offset for where, one in committed.items()} == {
        TopicPartition(world.source, 0): 9
    }


def test_a_micro_batch_that_begins_elsewhere_than_the_group_is_refused(world: World) -> None:
    world.commit(0, 4)
    for start in (0, 3, 5):
        with pytest.raises(OffsetsMoved, match=f"is at offset 4 of .*, this query at {start}"):
            world.commit(start, 9, query="another")
    assert world.commit(4, 9, query="another") is Outcome.WRITTEN


def test_a_query_goes_on_from_the_group_and_up_to_what_is_in_the_changelog(world: World) -> None:
    assert world.resume() == Resumption()
    world.log(b"one", is_commit=True)
    world.commit(0, 4)
    found = world.resume()
    first, second = TopicPartition(world.source, 0), TopicPartition(world.source, 1)
    assert found.offsets == {first: 4, second: -2}
    assert found.changelogs["counts"] == ((0, 0), (0, 2))  # a record and the transaction's marker
    assert found.changelogs.keys() == {"counts", "progress-0"}


def test_state_that_no_offsets_belong_to_is_refused_but_not_what_was_aborted(
    world: World,
) -> None:
    world.log(b"one", b"two", is_commit=False)
    assert world.resume() == Resumption()
    world.log(b"three", is_commit=True)
    with pytest.raises(TopologyError, match="use another app_id"):
        world.resume()
    assert world.resume(Delivery.AT_LEAST_ONCE).changelogs["counts"][1][1] > 2


def test_purging_is_done_for_named_topics_and_not_too_often(
    bootstrap: str, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other = make_topic(bootstrap, new_name(), 1), make_topic(bootstrap, new_name(), 1)
    with ottla.Producer(bootstrap) as producer:
        for name in (topic, other):
            for _ in range(10):
                producer.send(name, b"x")

    def starts() -> list[int]:
        with ottla.Admin(bootstrap) as admin:
            return [admin.list_offsets(name, {0: -2})[0].offset for name in (topic, other)]

    connection = sink_plan(
        Use.STREAM_WRITE,
        {"kafka.bootstrap.servers": bootstrap, "transactionalId": "x"},
        _WRITTEN,
    ).connection
    purge = Purge([topic], connection)
    purge.up_to({TopicPartition(topic, 0): 4, TopicPartition(other, 0): 4})
    assert starts() == [4, 0]
    purge.up_to({TopicPartition(topic, 0): 6})
    assert starts() == [4, 0]
    monkeypatch.setattr(purging.time, "monotonic", lambda: 1e12)
    purge.up_to({TopicPartition(topic, 0): 6})
    assert starts() == [6, 0]


def test_a_purge_that_fails_is_only_reported(bootstrap: str) -> None:
    plan = sink_plan(
        Use.STREAM_WRITE,
        {"kafka.bootstrap.servers": bootstrap, "transactionalId": "x"},
        _WRITTEN,
    )
    Purge(["nobody-made-this"], plan.connection).up_to({TopicPartition("nobody-made-this", 0): 1})
