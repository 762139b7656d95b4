"""Spark gives what the engine's test driver gives for the same micro-batches, restarts included."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.streams import Streams, Topology, TopologyTestDriver
from ottla.streams.spark.topic_follower import TopicFollower
from spark.topics import make_topic
from spark_streams.renaming import prefixed
from streams.running import random_steps
from streams.topologies import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewName = Callable[[], str]
FOREIGN = "foreign_left_join"
"""Its two queries answer each other: which row meets which first is a matter of timing."""
TOPOLOGIES = (
    *("session_count", "suppress_tumbling", "stream_left_join"),
    *("stream_global_left_join", "table_outer_join", FOREIGN),
)
Output = tuple[str | None, str | None, int]
DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Trial:
    """A topology under names of its own, and what is written to it, in two halves."""

    name: str
    prefix: str
    topology: Topology
    halves: tuple[list[Any], list[Any]]

    def expected(self) -> list[Output]:
        driver = TopologyTestDriver(self.topology, app_id=self.prefix)
        for half in self.halves:
            driver.pipe_batch(half)
            driver.restart()
        records = driver.read(f"{self.prefix}out")
        return [(one.key, one.value, one.timestamp_ms) for one in records]


def trial(name: str, prefix: str, today_ms: int) -> Trial:
    steps = [step for step in random_steps(name, 1) if "advance" not in step]
    records = [
        (prefix + one["topic"], one["key"], one["value"], today_ms + one["timestamp"])
        for one in steps
    ]
    middle = len(records) // 2
    halves = (records[:middle], records[middle:])
    return Trial(name, prefix, prefixed(build(name), prefix), halves)


def write(bootstrap: str, records: list[Any]) -> None:
    with ottla.Producer(bootstrap) as producer:
        for topic, key, value, timestamp_ms in records:
            producer.send(
                topic,
                None if value is None else value.encode(),
                key=None if key is None else key.encode(),
                timestamp_ms=timestamp_ms,
                partition=0,
            )


def written(bootstrap: str, topic: str) -> list[Output]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.decode()

    follower = TopicFollower(topic, {"bootstrap.servers": bootstrap})
    return [
        (text(record.key), text(record.value), record.timestamp_ms)
        for _, records in follower.news()
        for record in records
    ]


def latest(records: list[Output]) -> dict[str | None, str]:
    """The rows in the end."""
    last = {key: value for key, value, _ in records}
    return {key: value for key, value in last.items() if value is not None}


@pytest.mark.slow
def test_spark_gives_what_the_test_driver_gives(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    today_ms = int(time.time() * 1000) // DAY_MS * DAY_MS
    stem = new_name()[-16:]
    trials = [trial(name, f"{stem}-{name}-", today_ms) for name in TOPOLOGIES]
    for one in trials:
        for topic in (*one.topology.input_topics(), *one.topology.output_topics()):
            make_topic(bootstrap, topic, 1)
    for number in range(2):
        for one in trials:
            write(bootstrap, one.halves[number])
            Streams(
                one.topology,
                app_id=one.prefix + "app",
                bootstrap_servers=bootstrap,
                checkpoint=tmp_path / one.name,
            ).run_once(spark)
    found = {one.name: written(bootstrap, f"{one.prefix}out") for one in trials}
    expected = {one.name: one.expected() for one in trials}
    assert latest(found.pop(FOREIGN)) == latest(expected.pop(FOREIGN))
    assert found == expected
