"""Consume, transform, produce, killed again and again: the output is a function of the input."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from support.broker_process import BrokerProcess
from support.clients.confluent import ConfluentClient
from support.clients.face import ToSend
from support.eventually import eventually
from support.requests import a_topic
from support.wire import Connection
from transactions.child_process import ChildProgram
from transactions.committed_reads import CommittedReader
from transactions.transform_app import GROUP, INPUT, OUTPUT, transformed

SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}
INSTANCES = 2
"""And as many partitions, so that each has work."""
RECORDS_PER_ROUND = 30
WORK_SECONDS_MAX = 0.12
KILLS = {"confluent": 56, "aiokafka": 44}
ZOMBIE_EVERY = 14
BROKER_KILL_EVERY = 18

OwnBroker = Callable[..., BrokerProcess]


class App:
    """One instance of the application, whichever process that is at the moment."""

    def __init__(self, kind: str, number: int, bootstrap: str, folder: Path) -> None:
        self._arguments = [kind, bootstrap, f"{kind}-{number}"]
        self._folder = folder
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        name = f"{self._arguments[2]}-{self._starts}"
        self._progress = self._folder / f"{name}.progress"
        arguments = [*self._arguments, str(self._progress)]
        self.process = ChildProgram("transform_app.py", arguments, self._folder / f"{name}.log")

    def wait_working(self) -> None:
        """Wait until it begins to work; one that the broker's death ended is started again."""

        def is_working() -> bool:
            if not self.process.is_running:
                self.start()
            return self._progress.exists() and self._progress.stat().st_size > 0

        eventually(is_working, "the application's work")


class Pipeline:
    """Input that grows, the application, and a reader of its output."""

    def __init__(self, broker: BrokerProcess, kind: str, folder: Path) -> None:
        self.broker = broker
        self._client = ConfluentClient(broker.bootstrap_servers)
        with Connection(broker.bootstrap_servers) as connection:
            for topic in (INPUT, OUTPUT):
                a_topic(connection, topic, partitions=INSTANCES)
        self._fed = 0
        self.reader = CommittedReader(broker.bootstrap_servers)
        self.apps = [
            App(kind, number, broker.bootstrap_servers, folder) for number in range(INSTANCES)
        ]

    def feed(self) -> None:
        records = []
        for _ in range(RECORDS_PER_ROUND):
            self._fed += 1
            records.append(ToSend(b"record %d" % self._fed, partition=self._fed % INSTANCES))
        self._client.produce(INPUT, records)

    def expected(self) -> list[list[bytes]]:
        """What the output must be, partition by partition and in order."""
        return [
            [
                transformed(partition, record.offset, bytes(record.value or b""))
                for record in self.reader.read((INPUT, partition)).records
            ]
            for partition in range(INSTANCES)
        ]

    def output(self) -> list[list[bytes]]:
        return [self.reader.read((OUTPUT, partition)).values for partition in range(INSTANCES)]

    def close(self) -> None:
        self.reader.close()
        for app in self.apps:
            if app.process.is_running:
                app.process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KILLS)
def test_each_result_is_there_once_through_any_crash(
    own_broker: OwnBroker, tmp_path: Path, kind: str
) -> None:
    seed = 26
    print(f"seed {seed}")
    random, pipeline = Random(seed), Pipeline(own_broker(settings=SETTINGS), kind, tmp_path)
    try:
        for number in range(1, KILLS[kind] + 1):
            pipeline.feed()
            trouble(pipeline, random, number)
        check_output(pipeline)
    finally:
        pipeline.close()


def trouble(pipeline: Pipeline, random: Random, number: int) -> None:
    """Kill an instance in the middle of its work; now and then freeze one, or kill the broker."""
    app = random.choice(pipeline.apps)
    app.wait_working()
    app.process.ends_within(random.uniform(0, WORK_SECONDS_MAX))
    if number % BROKER_KILL_EVERY == 0:
        pipeline.broker.restart()
    if number % ZOMBIE_EVERY:
        app.process.kill()
        app.start()
        return
    zombie = app.process
    zombie.freeze()
    app.start()
    app.wait_working()
    zombie.thaw()
    if not zombie.ends_within(1.0):
        zombie.kill()


def check_output(pipeline: Pipeline) -> None:
    expected = pipeline.expected()
    sizes = [len(one) for one in expected]

    def is_all_there() -> bool:
        for app in pipeline.apps:
            app.wait_working()
        return all(len(there) >= size for there, size in zip(pipeline.output(), sizes, strict=True))

    eventually(is_all_there, "the whole output", timeout_seconds=120)
    assert pipeline.output() == expected
    for partition in range(INSTANCES):
        committed = pipeline.reader.group_offset(GROUP, (INPUT, partition))
        assert committed == len(expected[partition])
