"""Kafka Streams' semantics on a real Spark: all cases and all topologies of the battery.

With one record in a micro-batch, Spark gives what Kafka Streams gives: the cases, as they were
written from its documentation. With more, what `TopologyTestDriver.pipe_batch` gives: of several
input topics a task takes the record with the lowest timestamp of those that came with the
micro-batch. Where that leaves something open stands in `guaranteed`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.streams import Streams, Topology, TopologyTestDriver
from ottla.streams.spark.topic_follower import TopicFollower
from spark_streams.renaming import prefixed
from spark_streams.union import united
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
        for _, records in follower.news()
        for record in records
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

    def expected(self, *ends: int) -> Outputs:
        """What the test driver writes, which is made anew after every micro-batch."""
        driver = TopologyTestDriver(build(self.name))
        for start, end in zip((0, *ends), ends, strict=False):
            driver.pipe_batch(self.records[start:end])
            driver.restart()
        found = {topic: driver.read(topic) for topic in OUTPUTS}
        return {
            topic: [(one.key, one.value, one.timestamp_ms) for one in records]
            for topic, records in found.items()
            if records
        }


def random_trial(name: str, seed: int, prefix: str) -> Trial:
    steps = [step for step in random_steps(name, seed) if "advance" not in step]
    records = [(one["topic"], one["key"], one["value"], one["timestamp"]) for one in steps]
    return Trial(name, prefix, records)


@dataclass(frozen=True)
class Application:
    """Trials that run as one application."""

    trials: Sequence[Trial]
    app_id: str
    bootstrap: str
    checkpoint: Path
    topology: Topology

    @classmethod
    def together(
        cls, trials: Sequence[Trial], app_id: str, bootstrap: str, checkpoint: Path
    ) -> "Application":
        """In few queries, as many as there are."""
        topology = united(one.topology() for one in trials)
        make_topics(bootstrap, {*topology.input_topics(), *topology.output_topics()})
        return cls(trials, app_id, bootstrap, checkpoint, topology)

    @classmethod
    def alone(cls, trial: Trial, bootstrap: str, checkpoint: Path) -> "Application":
        """One, as its author would run it."""
        topology = trial.topology()
        make_topics(bootstrap, {*topology.input_topics(), *topology.output_topics()})
        return cls((trial,), trial.prefix + "app", bootstrap, checkpoint, topology)

    def streams(self) -> Streams:
        return Streams(
            self.topology,
            app_id=self.app_id,
            bootstrap_servers=self.bootstrap,
            checkpoint=self.checkpoint,
        )

    def write(self, start: int, end: int) -> None:
        write(self.bootstrap, [record for one in self.trials for record in one.inputs(start, end)])


# --- one record in a micro-batch -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_case_gives_on_spark_what_kafka_streams_documents(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    stem = new_name()[-12:]
    trials = [
        Trial(case.topology, f"{stem}-{number}-", case.inputs) for number, case in enumerate(CASES)
    ]
    application = Application.together(trials, f"{stem}-app", bootstrap, tmp_path)
    longest = max(len(case.inputs) for case in CASES)
    for steps in (range(2), range(2, longest)):  # between them everything is started again
        with application.streams().start(spark) as running:
            for step in steps:
                application.write(step, step + 1)
                running.catch_up()
    found = [one.outputs(bootstrap).get("out", []) for one in trials]
    wrong = {
        f"{case.topology}: {case.about}": (case.outputs, records)
        for case, records in zip(CASES, found, strict=True)
        if records != case.outputs
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
    stem = new_name()[-12:]
    trials = [random_trial(name, seed, f"{stem}-{name}-") for name in TOPOLOGIES]
    application = Application.together(trials, f"{stem}-app", bootstrap, tmp_path)
    longest = max(len(one.records) for one in trials)
    ends = (8, longest)
    for start, end in zip((0, *ends), ends, strict=False):
        application.write(start, end)
        application.streams().run_once(spark)
    expected = {one.name: guaranteed(one, one.expected(*ends)) for one in trials}
    found = {one.name: guaranteed(one, one.outputs(bootstrap)) for one in trials}
    wrong = {
        name: (expected[name], found[name]) for name in expected if expected[name] != found[name]
    }
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


def run_alone(
    trials: Sequence[Trial], spark: "SparkSession", bootstrap: str, checkpoint: Path
) -> None:
    for one in trials:
        application = Application.alone(one, bootstrap, checkpoint / one.name)
        ends = (8, len(one.records))
        for start, end in zip((0, *ends), ends, strict=False):
            application.write(start, end)
            application.streams().run_once(spark)
        outputs = settled(one, one.outputs(bootstrap))
        assert outputs == settled(one, one.expected(*ends)), one.name


@pytest.mark.slow
def test_applications_of_their_own_give_what_they_give_on_the_test_driver(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    names = ("process", "stream_left_join", "stream_global_left_join", "foreign_left_join")
    stem = new_name()[-12:]
    run_alone(
        [random_trial(name, 1, f"{stem}-{name}-") for name in names], spark, bootstrap, tmp_path
    )


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share", range(8))
def test_every_topology_is_an_application_of_its_own(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path, share: int
) -> None:
    stem = new_name()[-12:]
    names = list(TOPOLOGIES)[share::8]
    run_alone(
        [random_trial(name, 1, f"{stem}-{name}-") for name in names], spark, bootstrap, tmp_path
    )
