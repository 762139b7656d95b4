"""Producers and readers in processes of their own, and the history they leave behind."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ottla import Admin
from ottla.testing.cluster import Cluster
from support.eventually import NeverHappened, eventually
from support.faults.events import ProducerOptions, ReaderOptions, Reading, Writing
from support.faults.judge import History, Written
from support.journal import JournalReader, now_ns
from support.writer import whole_log

TESTS = Path(__file__).resolve().parents[2]
STOP_SECONDS_MAX = 120.0
PROGRESS_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How a producer writes."""

    library: str
    acks: str = "all"
    is_idempotent: bool = True

    @property
    def name(self) -> str:
        """Which has no blanks."""
        return f"{self.library}-{self.acks}-{'once' if self.is_idempotent else 'again'}"


CAREFUL = (Manner("confluent"), Manner("ottla"))
HASTY = Manner("confluent", acks="1", is_idempotent=False)
FORGETFUL = (Manner("confluent", is_idempotent=False), Manner("ottla", is_idempotent=False))
"""Acknowledged by all, but after a loss they just go on: there is no sequence to break."""


@dataclass(slots=True)
class ProducerProcess:
    """A producer and what it has written down."""

    name: str
    manner: Manner
    process: subprocess.Popen[bytes]
    journal: JournalReader[Writing]
    log: Path
    acknowledged: Counter[int] = field(default_factory=Counter)
    """How many records of each partition, at the last look."""
    last_ns: dict[int, int] = field(default_factory=dict)
    """When the last of each partition was."""
    _lines_seen: int = 0

    def read_on(self) -> None:
        """Takes note of what was acknowledged since the last look."""
        lines = self.journal.read_on()
        for line in lines[self._lines_seen :]:
            for sent in line.acknowledged:
                self.acknowledged[sent.partition] += 1
                self.last_ns[sent.partition] = sent.ended_ns
        self._lines_seen = len(lines)

    def written(self) -> Written:
        lines = self.journal.read_on()
        return Written(
            self.name,
            [sent for line in lines for sent in line.acknowledged],
            [sent for line in lines for sent in line.failed],
            lines[-1].sent if lines else {},
            is_durable=self.manner.acks == "all",
            is_once=self.manner.is_idempotent,
        )

    def troubles(self) -> list[str]:
        """What it complained of, in its journal and on standard error."""
        told = [line.trouble for line in self.journal.read_on() if line.trouble]
        return [*told[-5:], self.log.read_text(errors="replace")[-2000:]]


class Load:
    """Producers of two libraries and a reader on one topic; use as a context."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partitions: int,
        folder: Path,
        manners: tuple[Manner, ...] = CAREFUL,
    ) -> None:
        self._cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self._manners = manners
        self._group = f"readers-of-{topic}"
        self._folder = folder
        self.producers: list[ProducerProcess] = []
        self._reader: subprocess.Popen[bytes] | None = None
        self._read = JournalReader(folder / "reader.jsonl", Reading)
        self.healed_ns = 0

    def __enter__(self) -> "Load":
        self._folder.mkdir(parents=True, exist_ok=True)
        for manner in self._manners:
            self.producers.append(self._producer(manner))
        options = ReaderOptions(
            self._cluster.bootstrap_servers,
            self.topic,
            self.partitions,
            str(self._folder / "reader.jsonl"),
            self._group,
        )
        self._reader = launch("reader", options, self._folder / "reader.log")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes():
            if process.poll() is None:
                process.kill()
            process.wait(STOP_SECONDS_MAX)

    def wait_acknowledged(self, more: int, *, to: Manner | None = None) -> None:
        """Returns when so many more records of every partition are acknowledged to everybody.

        Or only to those that write in one manner.
        """
        self._look()
        wanted = [
            (producer, partition, producer.acknowledged[partition] + more)
            for producer in self.producers
            if to in (None, producer.manner)
            for partition in range(self.partitions)
        ]
        lacking: list[str] = []

        def is_enough() -> bool:
            self._look()
            lacking[:] = [
                f"{producer.name} in partition {partition}"
                for producer, partition, count in wanted
                if producer.acknowledged[partition] < count
            ]
            return not lacking

        try:
            eventually(is_enough, "progress", timeout_seconds=PROGRESS_SECONDS_MAX)
        except NeverHappened as error:
            raise AssertionError(f"nothing more is acknowledged to {lacking}") from error

    def wait_outage(self, seconds: float, *, partition: int | None = None) -> None:
        """Returns when nothing was acknowledged for so long, anywhere or in one partition."""
        eventually(
            lambda: self.has_outage(seconds, partition=partition),
            "an outage",
            timeout_seconds=PROGRESS_SECONDS_MAX,
        )

    def has_outage(self, seconds: float, *, partition: int | None = None) -> bool:
        """Whether nothing was acknowledged for so long, anywhere or in one partition."""
        self._look()
        ends = [
            end_ns
            for producer in self.producers
            for place, end_ns in producer.last_ns.items()
            if partition in (None, place)
        ]
        return now_ns() - max(ends, default=0) > seconds * 1e9

    def _look(self) -> None:
        for producer in self.producers:
            assert producer.process.poll() is None, f"{producer.name}: {producer.troubles()}"
            producer.read_on()

    def healed(self) -> None:
        """From now on the cluster must get well by itself."""
        self.healed_ns = now_ns()

    def finish(self) -> History:
        """Ends all writing and reading, waits for the replicas, and gathers what there is."""
        for process in self._processes():
            process.terminate()
        for producer in self.producers:
            code = producer.process.wait(STOP_SECONDS_MAX)
            assert code == 0, f"{producer.name} ended with {code}: {producer.troubles()}"
        assert self._reader is not None
        self._reader.wait(STOP_SECONDS_MAX)
        self._cluster.wait_until_in_sync()
        self._wait_nothing_left_behind()
        return History(
            written=[producer.written() for producer in self.producers],
            logs={partition: self._log(partition) for partition in range(self.partitions)},
            read=list(self._read.read_on()),
            replicas={partition: self._copies(partition) for partition in range(self.partitions)},
            committed=self._committed(),
            healed_ns=self.healed_ns,
        )

    def _wait_nothing_left_behind(self) -> None:
        """Whoever holds a log is a replica: others have removed theirs."""
        left: list[str] = []

        def is_clean() -> bool:
            rows = self._cluster.view.pictures()[self._cluster.controller()].topics
            left[:] = [
                f"{directory.name} on broker {number}"
                for row in rows[self.topic].partitions
                for number, broker in enumerate(self._cluster.brokers)
                if number not in row.replicas
                and (directory := broker.data / f"{self.topic}-{row.partition}").is_dir()
            ]
            return not left

        try:
            eventually(is_clean, "the removal of logs", timeout_seconds=PROGRESS_SECONDS_MAX)
        except NeverHappened as error:
            raise AssertionError(f"logs were left behind: {left}") from error

    def _producer(self, manner: Manner) -> ProducerProcess:
        name = f"{manner.name}-{self.topic}"
        journal = self._folder / f"{name}.jsonl"
        options = ProducerOptions(
            name=name,
            library=manner.library,
            bootstrap=self._cluster.bootstrap_servers,
            topic=self.topic,
            partitions=self.partitions,
            journal=str(journal),
            acks=manner.acks,
            is_idempotent=manner.is_idempotent,
        )
        log = self._folder / f"{name}.log"
        process = launch("producer", options, log)
        return ProducerProcess(name, manner, process, JournalReader(journal, Writing), log)

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        processes = [producer.process for producer in self.producers]
        return [*processes, self._reader] if self._reader is not None else processes

    def _log(self, partition: int) -> list[tuple[int, str]]:
        leader = self._cluster.leader_of(self.topic, partition)
        address = self._cluster.brokers[leader].bootstrap_servers
        records = whole_log(address, (self.topic, partition))
        return [(record.offset, (record.value or b"").decode()) for record in records]

    def _committed(self) -> dict[int, int]:
        with Admin(self._cluster.bootstrap_servers) as admin:
            found = admin.list_group_offsets(self._group)
        return {partition.partition: int(each.offset) for partition, each in found.items()}

    def _copies(self, partition: int) -> dict[int, bytes]:
        return copies_on_disk(self._cluster, self.topic, partition)


def copies_on_disk(cluster: Cluster, topic: str, partition: int) -> dict[int, bytes]:
    """What replicas have, by broker. Nobody may write any more, and everybody is in sync."""
    copies: dict[int, bytes] = {}
    for number, broker in enumerate(cluster.brokers):
        directory = broker.data / f"{topic}-{partition}"
        if directory.is_dir():
            segments = sorted(directory.glob("*.log"))
            copies[number] = b"".join(segment.read_bytes() for segment in segments)
    return copies


def launch(program: str, options: msgspec.Struct, log: Path) -> subprocess.Popen[bytes]:
    """Starts a program of this folder, with its options as JSON."""
    command = [sys.executable, "-m", f"support.faults.{program}"]
    searched = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, msgspec.json.encode(options).decode()],
            env=dict(os.environ, PYTHONPATH=searched),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
