"""Spark gives what the engine's test driver gives for the same records, restarts included.

A micro-batch makes one difference, which `TopologyTestDriver.pipe_batch` defines: of several input
topics a task takes the record with the lowest timestamp of those that came with the micro-batch.
So one record in a micro-batch gives exactly what Kafka Streams gives, and more than one what
`pipe_batch` gives, with two exceptions that stand here as functions: `as_guaranteed` (without
state, the order between input topics), and `comparable` (where queries feed each other, what comes
together in a micro-batch is a matter of timing: there, rows must be the same in the end).
"""

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.streams import Streams, Topology, TopologyTestDriver
from ottla.streams.spark.topic_follower import TopicFollower
from spark_streams.renaming import prefixed
from spark_streams.union import KINDS, united
from streams.running import OUTPUTS, random_steps
from streams.topologies import ALL as TOPOLOGIES
from streams.topologies import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewName = Callable[[], str]
Input = tuple[str, str | None, str | None, int]
Output = tuple[str | None, str | None, int]
DAY_MS = 24 * 60 * 60 * 1000
BY_THE_CLOCK = "process"
"""It also tells what it knows by the wall clock, under the key `wall`."""
TOGETHER = [name for name in TOPOLOGIES if name != BY_THE_CLOCK]


# --- topics --------------------------------------------------------------------------------------


def make_topics(bootstrap: str, names: Iterable[str]) -> None:
    """Topics of one partition whose records may be as old as they like."""
    with ottla.Admin(bootstrap) as admin:
        topics = [ottla.NewTopic(name, 1, configs={"retention.ms": "-1"}) for name in names]
        for created in admin.create_topics(*topics):
            assert created.error is None, created


def write(bootstrap: str, records: Iterable[Input]) -> None:
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


def outputs_of(driver: TopologyTestDriver, prefix: str = "") -> dict[str, list[Output]]:
    found = {topic: driver.read(prefix + topic) for topic in OUTPUTS}
    return {
        topic: [(one.key, one.value, one.timestamp_ms) for one in records]
        for topic, records in found.items()
        if records
    }


# --- every topology in one application -----------------------------------------------------------

Outputs = dict[str, list[Output]]
"""What a topology has written, by topic."""


@dataclass(frozen=True)
class Together:
    """Topologies as one application under names of their own."""

    names: tuple[str, ...]
    prefix: str
    bootstrap: str
    checkpoint: Path
    topology: Topology

    @classmethod
    def prepared(
        cls, names: Iterable[str], bootstrap: str, prefix: str, checkpoint: Path
    ) -> "Together":
        topology = united({name: build(name) for name in names}, prefix)
        make_topics(bootstrap, {*topology.input_topics(), *topology.output_topics()})
        return cls(tuple(names), prefix, bootstrap, checkpoint, topology)

    def app(self) -> Streams:
        return Streams(
            self.topology,
            app_id=self.prefix + "app",
            bootstrap_servers=self.bootstrap,
            checkpoint=self.checkpoint,
        )

    def write(self, records: Iterable[Input]) -> None:
        """To the input topics of every query."""
        topics = set(self.topology.input_topics())
        copies = [(self.prefix + kind, record) for record in records for kind in KINDS]
        write(
            self.bootstrap,
            [(start + topic, *rest) for start, (topic, *rest) in copies if start + topic in topics],
        )

    def written(self) -> dict[str, Outputs]:
        topics = set(self.topology.output_topics())
        named = {name: f"{self.prefix}{name}-" for name in self.names}
        return {
            name: {
                topic: found
                for topic in OUTPUTS
                if start + topic in topics and (found := written(self.bootstrap, start + topic))
            }
            for name, start in named.items()
        }


def fed(name: str, batches: Iterable[Iterable[Input]], *, one_by_one: bool = False) -> Outputs:
    """What a topology writes on the test driver, which is restarted after every micro-batch."""
    topology = build(name)
    driver = TopologyTestDriver(topology)
    for batch in batches:
        mine = [record for record in batch if record[0] in topology.input_topics()]
        for some in [[record] for record in mine] if one_by_one else [mine]:
            driver.pipe_batch(some)
        driver.restart()
    return outputs_of(driver)


def as_guaranteed(name: str, outputs: Outputs) -> Outputs:
    """Without state, the order between two input topics is nobody's business."""
    if name != "merge":
        return outputs
    sides = {True: "right", False: "left"}
    return {
        side: [one for one in outputs["out"] if (one[1] or "").endswith("!") is is_right]
        for is_right, side in sides.items()
    }


def random_records(seed: int, count: int) -> list[Input]:
    """Few keys, close times, some late, some without key or value; the last ones close windows.

    No record of one side of a join is as old as one of the other: which of them a topology takes
    first depends on which side was drawn first, and here all share their sources.
    """
    chance = random.Random(seed)
    records: list[Input] = []
    now_ms = 10
    for _ in range(count):
        now_ms += chance.choice((0, 1, 1, 2, 3, 5, 8))
        late_ms = chance.choice((0, 0, 0, 1, 4, 9, 16))
        key = chance.choice(("k", "l", "k", "l", "a", "b", None))
        value = chance.choice(("a", "b", "c", "ab", "bc", "ca", None))
        topic = chance.choice(("in", "in", "left", "right"))
        records.append((topic, key, value, max(0, now_ms - late_ms)))
    for topic in ("in", "left", "right"):
        now_ms += 1000
        records.append((topic, "x", "z", now_ms))
    parity = {"left": 0, "right": 1}
    return [
        (topic, key, value, timestamp_ms - timestamp_ms % 2 + parity.get(topic, timestamp_ms % 2))
        for topic, key, value, timestamp_ms in records
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_every_topology_gives_on_spark_what_it_gives_on_the_test_driver(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path, seed: int
) -> None:
    records = random_records(seed, 120)
    halves = records[:60], records[60:]
    together = Together.prepared(TOGETHER, bootstrap, new_name()[-16:] + "-", tmp_path)
    for half in halves:
        together.write(half)
        together.app().run_once(spark)
    expected = {name: as_guaranteed(name, fed(name, halves)) for name in TOGETHER}
    assert all(expected.values()), "each of them has something to say"
    found = together.written()
    assert {name: as_guaranteed(name, found[name]) for name in TOGETHER} == expected


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_record_at_a_time_gives_on_spark_what_kafka_streams_gives(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    records = random_records(5, 24)
    together = Together.prepared(TOGETHER, bootstrap, new_name()[-16:] + "-", tmp_path)
    for some in (records[:12], records[12:]):
        with together.app().start(spark) as running:
            for record in some:
                together.write([record])
                running.catch_up()
    expected = {name: fed(name, [records], one_by_one=True) for name in TOGETHER}
    assert together.written() == expected


# --- topologies as applications of their own -----------------------------------------------------


@dataclass(frozen=True)
class Alone:
    """A topology under names of its own, and what is written to it, in two halves."""

    name: str
    prefix: str
    topology: Topology
    halves: tuple[list[Input], list[Input]]

    def expected(self) -> Outputs:
        driver = TopologyTestDriver(self.topology, app_id=self.prefix)
        for half in self.halves:
            driver.pipe_batch(half)
            driver.restart()
        return outputs_of(driver, self.prefix)


def alone(name: str, prefix: str, today_ms: int) -> Alone:
    steps = [step for step in random_steps(name, 1) if "advance" not in step]
    records = [
        (prefix + one["topic"], one["key"], one["value"], today_ms + one["timestamp"])
        for one in steps
    ]
    middle = len(records) // 2
    halves = (records[:middle], records[middle:])
    return Alone(name, prefix, prefixed(build(name), prefix), halves)


def comparable(trial: Alone, outputs: Outputs) -> Any:
    """Everything, but where queries feed each other the rows in the end."""
    if trial.name == BY_THE_CLOCK:
        return [one for one in outputs["out"] if one[0] != "wall"]
    if len(trial.topology.subtopologies) == 1:
        return as_guaranteed(trial.name, outputs)
    last = {key: value for key, value, _ in outputs.get("out", [])}
    return {key: value for key, value in last.items() if value is not None}


def run_alone(
    names: Iterable[str], spark: "SparkSession", bootstrap: str, stem: str, checkpoint: Path
) -> None:
    today_ms = int(time.time() * 1000) // DAY_MS * DAY_MS
    trials = [alone(name, f"{stem}-{name}-", today_ms) for name in names]
    for one in trials:
        make_topics(bootstrap, {*one.topology.input_topics(), *one.topology.output_topics()})
    for number in range(2):
        for one in trials:
            write(bootstrap, one.halves[number])
            Streams(
                one.topology,
                app_id=one.prefix + "app",
                bootstrap_servers=bootstrap,
                checkpoint=checkpoint / one.name,
            ).run_once(spark)
    for one in trials:
        outputs = {topic: written(bootstrap, one.prefix + topic) for topic in one.expected()}
        assert comparable(one, outputs) == comparable(one, one.expected()), one.name


@pytest.mark.slow
def test_applications_of_their_own_give_what_they_give_on_the_test_driver(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    run_alone(
        ("stream_left_join", "foreign_left_join"), spark, bootstrap, new_name()[-16:], tmp_path
    )


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share", range(8))
def test_every_topology_is_an_application_of_its_own(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path, share: int
) -> None:
    run_alone(list(TOPOLOGIES)[share::8], spark, bootstrap, new_name()[-16:], tmp_path)
