"""A word count as its users would run it: results, a restart, its group, and its errors."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.streams import (
    ProcessorContext,
    Record,
    Streams,
    StreamsBuilder,
    Topology,
    key_value_store,
)
from ottla.streams.failures import TopologyError
from ottla.streams.spark.checkpoint_mark import mark_checkpoint
from ottla.streams.spark.failure_sentence import QueryFailed
from spark.topics import make_topic, rows_of, values_of
from support.eventually import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewName = Callable[[], str]


def word_count(lines: str, counts: str) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(lines, value="str").flat_map_values(str.split, value="str")
    words.group_by(lambda key, word: word).count(store="counts").to_stream().to(counts)
    return builder.build()


def write(bootstrap: str, topic: str, *lines: str, partitions: int = 1) -> None:
    with ottla.Producer(bootstrap) as producer:
        for number, line in enumerate(lines):
            producer.send(topic, line.encode(), partition=number % partitions)


def updates(bootstrap: str, topic: str) -> dict[str, list[int]]:
    """All counts that were written for each word, in order."""
    found: dict[str, list[int]] = {}
    for rows in rows_of(bootstrap, topic).values():
        for key, value in rows:
            assert key is not None
            assert value is not None
            found.setdefault(key.decode(), []).append(int.from_bytes(value))
    return found


def test_words_are_counted_once_and_a_restart_goes_on_where_it_was(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    lines, counts, app_id = make_topic(bootstrap, new_name()), new_name(), new_name()
    make_topic(bootstrap, counts, 3)

    def app() -> Streams:
        topology = word_count(lines, counts)
        return Streams(topology, app_id=app_id, bootstrap_servers=bootstrap, checkpoint=tmp_path)

    write(bootstrap, lines, "to be or", "not to be", partitions=2)
    app().run_once(spark)
    assert updates(bootstrap, counts) == {"to": [1, 2], "be": [1, 2], "or": [1], "not": [1]}

    write(bootstrap, lines, "be quick")
    app().run_once(spark)
    expected = {"to": [1, 2], "be": [1, 2, 3], "or": [1], "not": [1], "quick": [1]}
    assert updates(bootstrap, counts) == expected

    with ottla.Admin(bootstrap) as admin:
        committed = admin.list_group_offsets(app_id)
        described = admin.describe_topic(f"{app_id}-counts-changelog")
    assert {where.topic for where in committed} == {lines, f"{app_id}-counts-repartition"}
    assert sum(committed[where].offset for where in committed if where.topic == lines) == 3
    assert len(described.partitions) == 2
    changelog = updates(bootstrap, f"{app_id}-counts-changelog")
    assert {word: seen[-1] for word, seen in changelog.items()} == {
        word: seen[-1] for word, seen in expected.items()
    }


def test_timers_by_the_wall_clock_fire_without_new_records_and_after_a_restart(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    class Clock:
        """Says once a second of the wall clock how many keys it has seen."""

        def init(self, context: ProcessorContext) -> None:
            self.context, self.seen = context, context.store("seen")
            context.schedule(timedelta(seconds=1), "wall-clock", self.tell)

        def process(self, record: Record) -> None:
            self.seen.put(record.value, "x")

        def tell(self, now_ms: int) -> None:
            self.context.forward(Record("seen", str(len(list(self.seen.all()))), now_ms))

    topic, out = make_topic(bootstrap, new_name(), 1), make_topic(bootstrap, new_name(), 1)
    builder = StreamsBuilder(value="str")
    builder.add_store(key_value_store("seen", value="str"))
    builder.stream(topic).process(Clock, stores=["seen"], value="str").to(out)
    app = Streams(
        builder.build(), app_id=new_name(), bootstrap_servers=bootstrap, checkpoint=tmp_path
    )
    write(bootstrap, topic, "one", "two")
    for _ in range(2):
        enough = len(values_of(bootstrap, out)) + 3
        with app.start(spark):
            eventually(
                lambda least=enough: len(values_of(bootstrap, out)) >= least,
                "a third timer",
                timeout_seconds=300,
            )
            assert app.wait(0.0) is False
    assert set(values_of(bootstrap, out)) == {b"2"}


def test_a_function_that_fails_ends_the_application_with_one_sentence(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topic = make_topic(bootstrap, new_name(), 1)
    builder = StreamsBuilder(value="str")
    builder.stream(topic).map_values(int).to(new_name(), value="int")
    app = Streams(
        builder.build(), app_id=new_name(), bootstrap_servers=bootstrap, checkpoint=tmp_path
    )
    write(bootstrap, topic, "seven")
    with pytest.raises(QueryFailed) as failed:
        app.run_once(spark)
    assert str(failed.value) == (
        f"{app.app_id}-0 failed: record 0 of {topic}-0 failed: ValueError: "
        "invalid literal for int() with base 10: 'seven'"
    )


def test_a_topic_that_is_not_there_is_said_before_anything_starts(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topology = word_count("nobody-made-this", new_name())
    app = Streams(topology, app_id=new_name(), bootstrap_servers=bootstrap, checkpoint=tmp_path)
    with pytest.raises(TopologyError, match="'nobody-made-this' is read but does not exist"):
        app.start(spark)
    assert app.queries == ()


def test_a_checkpoint_of_another_topology_is_refused(
    bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    one, other = make_topic(bootstrap, new_name()), make_topic(bootstrap, new_name())
    for part in word_count(one, "out").subtopologies:
        mark_checkpoint(str(tmp_path), part)
        mark_checkpoint(str(tmp_path), part)
    app = Streams(
        word_count(other, new_name()),
        app_id=new_name(),
        bootstrap_servers=bootstrap,
        checkpoint=tmp_path,
    )
    with pytest.raises(TopologyError, match=f"had topic {one}, now has topic {other}"):
        app.start()
