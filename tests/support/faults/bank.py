"""Transfers between accounts under faults: who makes them, and the history they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cluster.coordination import TRANSACTION, committed_values, coordinator_of
from ottla import Admin
from ottla.clients.offsets import LATEST
from ottla.errors import OttlaError
from ottla.testing.cluster import Cluster
from support.eventually import eventually
from support.faults.bank_judge import BankHistory
from support.faults.events import Note, ReaderOptions, Reading, TransferOptions
from support.faults.load import STOP_SECONDS_MAX, copies_on_disk, launch
from support.faults.transfers import FENCED_EXIT, TIMEOUT_MS
from support.journal import JournalReader, now_ns
from transactions.bank import PARTITIONS

LIBRARIES = ("confluent", "ottla")
COMMITS_THAT_SHOW_PROGRESS = 30
PROGRESS_SECONDS_MAX = 60.0
UNLOCK_SECONDS_MAX = TIMEOUT_MS / 1000 + 20.0
"""By then no transaction may hold readers back."""


class Writer:
    """The holder of one transactional id: whichever process that is at the moment."""

    def __init__(self, cluster: Cluster, library: str, topic: str, folder: Path) -> None:
        self.transactional_id = f"{library}-{topic}"
        self._cluster = cluster
        self._library = library
        self._topic = topic
        self._folder = folder
        self._lives = 0
        self._journal = JournalReader(folder / f"{self.transactional_id}.jsonl", Note)
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Another process with the same id, which displaces the one before."""
        self._lives += 1
        options = TransferOptions(
            library=self._library,
            bootstrap=self._cluster.bootstrap_servers,
            transactional_id=self.transactional_id,
            life=self._lives,
            topic=self._topic,
            journal=str(self._folder / f"{self.transactional_id}.jsonl"),
        )
        self.process = launch("transfers", options, self.log)
        return self.process

    @property
    def log(self) -> Path:
        return self._folder / f"{self.transactional_id}.log"

    def notes(self) -> list[Note]:
        return self._journal.read_on()

    def commits(self) -> int:
        return sum(note.word == "committed" for note in self.notes())

    def revive(self) -> None:
        """A process whose transaction was ended for it ends too, and has a successor."""
        code = self.process.poll()
        if code is not None:
            assert code == FENCED_EXIT, f"{code}: {self.log.read_text(errors='replace')[-2000:]}"
            self.start()

    def end(self, how: signal.Signals) -> int:
        if self.process.poll() is None:
            os.kill(self.process.pid, how)
            os.kill(self.process.pid, signal.SIGCONT)
        return self.process.wait(STOP_SECONDS_MAX)


class Bank:
    """Writers of two libraries and a reader of what is committed; use as a context."""

    def __init__(self, cluster: Cluster, topic: str, folder: Path) -> None:
        self.cluster = cluster
        self.topic = topic
        self._folder = folder
        self.writers: list[Writer] = []
        self._reader: subprocess.Popen[bytes] | None = None
        self._read = JournalReader(folder / "reader.jsonl", Reading)
        self.healed_ns = 0

    def __enter__(self) -> Bank:
        self._folder.mkdir(parents=True, exist_ok=True)
        for library in LIBRARIES:
            self.writers.append(Writer(self.cluster, library, self.topic, self._folder))
        options = ReaderOptions(
            self.cluster.bootstrap_servers,
            self.topic,
            PARTITIONS,
            str(self._folder / "reader.jsonl"),
            f"auditors-of-{self.topic}",
        )
        self._reader = launch("reader", options, self._folder / "reader.log")
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.end(signal.SIGKILL)
        if self._reader is not None:
            self._reader.kill()
            self._reader.wait(STOP_SECONDS_MAX)

    def wait_progress(self) -> None:
        """Returns when every transactional id has some more commits."""
        wanted = {writer: writer.commits() + COMMITS_THAT_SHOW_PROGRESS for writer in self.writers}

        def has_progressed() -> bool:
            for writer in wanted:
                writer.revive()
            return all(writer.commits() >= count for writer, count in wanted.items())

        eventually(has_progressed, "more transfers", timeout_seconds=PROGRESS_SECONDS_MAX)

    def healed(self) -> None:
        self.healed_ns = now_ns()

    def finish(self) -> BankHistory:
        """Ends all writing and reading, waits for the replicas, and gathers what there is."""
        for writer in self.writers:
            assert writer.end(signal.SIGTERM) in (0, FENCED_EXIT), writer.log.read_text()[-2000:]
        assert self._reader is not None
        self._reader.terminate()
        self._reader.wait(STOP_SECONDS_MAX)
        self.cluster.wait_until_in_sync()
        self._wait_unlocked()
        values = committed_values(self.cluster, self.topic, range(PARTITIONS))
        return BankHistory(
            notes=[note for writer in self.writers for note in writer.notes()],
            values={index: [value.decode() for value in each] for index, each in enumerate(values)},
            read=list(self._read.read_on()),
            replicas={
                index: copies_on_disk(self.cluster, self.topic, index)
                for index in range(PARTITIONS)
            },
            healed_ns=self.healed_ns,
        )

    def _wait_unlocked(self) -> None:
        """No transaction stays open: readers come to the end of every partition."""
        eventually(
            lambda: not list(self.locked()),
            "the end of all transactions",
            timeout_seconds=UNLOCK_SECONDS_MAX,
        )

    def locked(self) -> Iterator[int]:
        """Partitions whose last stable offset is behind their end."""
        everything = dict.fromkeys(range(PARTITIONS), LATEST)
        with Admin(self.cluster.bootstrap_servers) as admin:
            ends = admin.list_offsets(self.topic, everything)
            stable = admin.list_offsets(self.topic, everything, committed_only=True)
        return (index for index in ends if ends[index].offset != stable[index].offset)


@dataclass(frozen=True, slots=True)
class Branch:
    """A cluster in which money is moved, and the chance to choose by."""

    cluster: Cluster
    bank: Bank
    random: Random

    def a_writer(self) -> Writer:
        return self.random.choice(self.bank.writers)

    def coordinator_of(self, writer: Writer) -> int:
        return coordinator_of(self.cluster, TRANSACTION, writer.transactional_id)

    def state_of(self, writer: Writer) -> str:
        """What its coordinator says; empty where nobody answers for now."""
        try:
            with Admin(self.cluster.bootstrap_servers) as admin:
                return admin.describe_transaction(writer.transactional_id).state
        except OttlaError:
            return ""


def kill_coordinator(branch: Branch) -> None:
    coordinator = branch.coordinator_of(branch.a_writer())
    branch.cluster.kill(coordinator)
    branch.bank.wait_progress()
    branch.cluster.start_brokers([coordinator])


def kill_leader(branch: Branch) -> None:
    leader = branch.cluster.leader_of(branch.bank.topic, branch.random.randrange(PARTITIONS))
    branch.cluster.kill(leader)
    branch.bank.wait_progress()
    branch.cluster.start_brokers([leader])


def pause_writer(branch: Branch) -> None:
    """Until its transaction was ended for it; then it goes on where it stood."""
    writer = branch.a_writer()
    eventually(lambda: _is_stopped_amidst(branch, writer), "a transaction to be left open")
    eventually(
        lambda: branch.state_of(writer) == "CompleteAbort",
        "the end of a transaction whose writer sleeps",
        timeout_seconds=UNLOCK_SECONDS_MAX,
    )
    os.kill(writer.process.pid, signal.SIGCONT)


def _is_stopped_amidst(branch: Branch, writer: Writer) -> bool:
    """Stops it; lets it go on where it has no transaction open."""
    os.kill(writer.process.pid, signal.SIGSTOP)
    if branch.state_of(writer) == "Ongoing":
        return True
    os.kill(writer.process.pid, signal.SIGCONT)
    return False


def displace_writer(branch: Branch) -> None:
    """It is frozen, another takes its id and moves money, and then it wakes up."""
    writer = branch.a_writer()
    zombie = writer.process
    os.kill(zombie.pid, signal.SIGSTOP)
    writer.start()
    branch.bank.wait_progress()
    os.kill(zombie.pid, signal.SIGCONT)
    assert zombie.wait(STOP_SECONDS_MAX) == FENCED_EXIT, writer.log.read_text()[-2000:]
