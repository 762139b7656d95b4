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
LIBRARIES = ("confluent", "ottla")


@dataclass(slots=True)
class ProducerProcess:
    """A producer and what it has written down."""

    name: str
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
        )

    def troubles(self) -> list[str]:
        """What it complained of, in its journal and on standard error."""
        told = [line.trouble for line in self.journal.read_on() if line.trouble]
        return [*told[-5:], self.log.read_text(errors="replace")[-2000:]]


class Load:
    """Two producers, of two libraries, and a reader on one topic; use as a context."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int, folder: Path) -> None:
        self._cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self._group = f"readers-of-{topic}"
        self._folder = folder
        self.producers: list[ProducerProcess] = []
        self._reader: subprocess.Popen[bytes] | None = None
        self._read = JournalReader(folder / "reader.jsonl", Reading)
        self.healed_ns = 0

    def __enter__(self) -> "Load":
        self._folder.mkdir(parents=True, exist_ok=True)
        for library in LIBRARIES:
            self.producers.append(self._producer(library))
        options = ReaderOptions(
            self._cluster.bootstrap_servers,
            self.topic,
            self.partitions,
            str(self._folder / "reader.jsonl"),
            self._group,
        )
        self._reader = _launch("reader", options, self._folder / "reader.log")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes():
            if process.poll() is None:
                process.kill()
            process.wait(STOP_SECONDS_MAX)

    def wait_acknowledged(self, more: int) -> None:
        """Returns when so many more records of every partition are acknowledged to everybody."""
        self._look()
        wanted = [
            (producer, partition, producer.acknowledged[partition] + more)
            for producer in self.producers
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

        def has_come() -> bool:
            self._look()
            ends = [
                end_ns
                for producer in self.producers
                for place, end_ns in producer.last_ns.items()
                if partition in (None, place)
            ]
            return now_ns() - max(ends, default=0) > seconds * 1e9

        eventually(has_come, "an outage", timeout_seconds=PROGRESS_SECONDS_MAX)

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
        return History(
            written=[producer.written() for producer in self.producers],
            logs={partition: self._log(partition) for partition in range(self.partitions)},
            read=list(self._read.read_on()),
            replicas={partition: self._copies(partition) for partition in range(self.partitions)},
            committed=self._committed(),
            healed_ns=self.healed_ns,
        )

    def _producer(self, library: str) -> ProducerProcess:
        name = f"{library}-{self.topic}"
        journal = self._folder / f"{name}.jsonl"
        options = ProducerOptions(
            name=name,
            library=library,
            bootstrap=self._cluster.bootstrap_servers,
            topic=self.topic,
            partitions=self.partitions,
            journal=str(journal),
        )
        log = self._folder / f"{name}.log"
        process = _launch("producer", options, log)
        return ProducerProcess(name, process, JournalReader(journal, Writing), log)

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
        """What is on the disks. Nobody writes any more and everybody is in sync."""
        copies: dict[int, bytes] = {}
        for number, broker in enumerate(self._cluster.brokers):
            directory = broker.data / f"{self.topic}-{partition}"
            if directory.is_dir():
                segments = sorted(directory.glob("*.log"))
                copies[number] = b"".join(segment.read_bytes() for segment in segments)
        return copies


def _launch(program: str, options: msgspec.Struct, log: Path) -> subprocess.Popen[bytes]:
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
