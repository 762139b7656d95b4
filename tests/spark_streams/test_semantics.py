"""Kafka Streams' semantics on a real Spark: all cases and all topologies of the battery.

With one record in a micro-batch, Spark gives what Kafka Streams gives: the cases, as they were
written from its documentation. With more, what `TopologyTestDriver.pipe_batch` gives: of several
input topics a task takes the record with the lowest timestamp of those that came with the
micro-batch. Where that leaves something open stands in `guaranteed`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.streams import Streams, Topology, TopologyTestDriver
from ottla.streams.spark.topic_follower import TopicFollower
from spark_streams.renaming import prefixed
from spark_streams.union import can_unite, united
from streams.case import Input, Output
from streams.cases import ALL as CASES
from streams.running import OUTPUTS, random_steps
from streams.topologies import ALL as TOPOLOGIES
from streams.topologies import build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewName = Callable[[], str]
Outputs = dict[str, list[Output]]
"""What a topology has written, by topic."""
HALVES = (10, 100)
"""Where the first one ends, and the second: there are never more records."""
BY_THE_CLOCK = "wall"
"""The key under which a processor tells what it knows, now and then by the wall clock."""


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
        for record in follower.news()
        if record.key != BY_THE_CLOCK.encode()
    ]


@dataclass(frozen=True)
class Trial:
    """A topology under names of its own on the broker, and what is written to it."""

    name: str
    prefix: str
    records: Sequence[Input]

    def topology(self) -> Topology:
        return prefixed(build(self.name), self.prefix)

    def inputs(self, start: int, end: int) -> list[Input]:
        """Some of the records, for the broker."""
        return [(self.prefix + topic, *rest) for topic, *rest in self.records[start:end]]

    def outputs(self, bootstrap: str) -> Outputs:
        """What was written on the broker."""
        topics = set(build(self.name).output_topics())
        found = {one: written(bootstrap, self.prefix + one) for one in OUTPUTS if one in topics}
        return {topic: records for topic, records in found.items() if records}

    def expected(self) -> Outputs:
        """What the test driver writes, which is made anew after each half."""
        driver = TopologyTestDriver(build(self.name))
        for start, end in pairwise((0, *HALVES)):
            driver.pipe_batch(self.records[start:end])
            driver.restart()
        found = {topic: driver.read(topic) for topic in OUTPUTS}
        return {
            topic: [(one.key, one.value, one.timestamp_ms) for one in records]
            for topic, records in found.items()
            if records
        }


def random_trials(names: Iterable[str], seed: int, new_name: NewName) -> list[Trial]:
    stem = new_name()[-12:]
    return [
        Trial(
            name,
            f"{stem}-{name}-",
            [
                (step["topic"], step["key"], step["value"], step["timestamp"])
                for step in random_steps(name, seed)
                if "advance" not in step
            ],
        )
        for name in names
    ]


class Application:
    """Trials that run as one application, in as few queries as can be, or one by itself."""

    def __init__(self, trials: Sequence[Trial], bootstrap: str, checkpoint: Path) -> None:
        self._trials = trials
        self._bootstrap = bootstrap
        self._checkpoint = checkpoint
        whole = [one.topology() for one in trials]
        self._topology = whole[0] if len(whole) == 1 else united(whole)
        topics = {*self._topology.input_topics(), *self._topology.output_topics()}
        make_topics(bootstrap, topics)

    def streams(self) -> Streams:
        return Streams(
            self._topology,
            app_id=self._trials[0].prefix + "app",
            bootstrap_servers=self._bootstrap,
            checkpoint=self._checkpoint,
        )

    def write(self, start: int, end: int) -> None:
        records = [record for one in self._trials for record in one.inputs(start, end)]
        write(self._bootstrap, records)

    def run_halves(self, spark: "SparkSession", ends: tuple[int, int]) -> None:
        """With everything started again between them."""
        for start, end in pairwise((0, *ends)):
            self.write(start, end)
            self.streams().run_once(spark)


# --- one record in a micro-batch -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_case_gives_on_spark_what_kafka_streams_documents(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    stem = new_name()[-12:]
    cases = {f"{stem}-{number}-": case for number, case in enumerate(CASES)}
    trials = [Trial(case.topology, prefix, case.inputs) for prefix, case in cases.items()]
    longest = max(len(case.inputs) for case in CASES)
    unitable = [one for one in trials if can_unite(one.topology())]
    application = Application(unitable, bootstrap, tmp_path / "united")
    for steps in (range(2), range(2, longest)):  # between them everything is started again
        with application.streams().start(spark) as running:
            for step in steps:
                application.write(step, step + 1)
                running.catch_up()
    for one in trials:
        if one not in unitable:  # of one input topic, many at once give what each alone gives
            Application([one], bootstrap, tmp_path / "alone").run_halves(spark, (2, longest))
    found = {one.prefix: one.outputs(bootstrap).get("out", []) for one in trials}
    wrong = {
        f"{case.topology}: {case.about}": (case.outputs, found[prefix])
        for prefix, case in cases.items()
        if found[prefix] != case.outputs
    }
    assert not wrong


# --- many records in a micro-batch ---------------------------------------------------------------


def guaranteed(trial: Trial, outputs: Outputs) -> Outputs:
    """Without state, the order between two input topics is nobody's business."""
    if trial.name != "merge":
        return outputs
    records = outputs.get("out", [])
    return {
        "left": [one for one in records if not (one[1] or "").endswith("!")],
        "right": [one for one in records if (one[1] or "").endswith("!")],
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_every_topology_gives_on_spark_what_it_gives_on_the_test_driver(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path, seed: int
) -> None:
    trials = [one for one in random_trials(TOPOLOGIES, seed, new_name) if can_unite(one.topology())]
    Application(trials, bootstrap, tmp_path).run_halves(spark, HALVES)
    expected = {one.name: guaranteed(one, one.expected()) for one in trials}
    found = {one.name: guaranteed(one, one.outputs(bootstrap)) for one in trials}
    wrong = {name: (expected[name], found[name]) for name in found if found[name] != expected[name]}
    assert not wrong


# --- applications of their own -------------------------------------------------------------------


def settled(trial: Trial, outputs: Outputs) -> Outputs | dict[str | None, str]:
    """All, or the rows in the end where queries feed each other.

    There, which records meet in a micro-batch is a matter of timing.
    """
    if len(trial.topology().subtopologies) == 1:
        return guaranteed(trial, outputs)
    last = {key: value for key, value, _ in outputs.get("out", [])}
    return {key: value for key, value in last.items() if value is not None}


def check_alone(trial: Trial, spark: "SparkSession", bootstrap: str, checkpoint: Path) -> None:
    Application([trial], bootstrap, checkpoint).run_halves(spark, HALVES)
    assert settled(trial, trial.outputs(bootstrap)) == settled(trial, trial.expected()), trial.name


@pytest.mark.slow
def test_applications_of_their_own_give_what_they_give_on_the_test_driver(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    names = ("process", "stream_left_join", "stream_global_left_join", "foreign_left_join")
    for one in random_trials(names, 1, new_name):
        check_alone(one, spark, bootstrap, tmp_path / one.name)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_topology_is_an_application_of_its_own(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path, name: str
) -> None:
    (trial,) = random_trials([name], 2, new_name)
    check_alone(trial, spark, bootstrap, tmp_path)
