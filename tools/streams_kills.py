"""Kills a running streams application, its processes and its broker, and judges what it wrote.

    python tools/streams_kills.py [--kills 10] [--records 2000] [--seed 1] [--cluster]
    python tools/streams_kills.py --bootstrap HOST:PORT    # on brokers that are there, and stay

A source topic is counted by key into another topic, through a repartition topic, while something is
killed at random moments and started again: the driver with all its processes, an executor, a daemon
or a worker of Spark's Python, the broker. Executors of their own there are with `--cluster` only, a
Spark cluster on this machine. In the end the counts of every key must be 1, 2, 3 ... without a gap
and without a repetition.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

import ottla
from ottla.streams.spark.topic_follower import TopicFollower
from ottla.testing import ChildBroker

PROGRAM = """
import sys

from ottla.spark import session
from ottla.streams import Streams, StreamsBuilder

bootstrap, app_id, checkpoint, master, how = sys.argv[1:]
builder = StreamsBuilder(value="str")
events = builder.stream(f"{app_id}-events").select_key(lambda _, value: value)
events.group_by_key().count(store="counts").to_stream().to(f"{app_id}-counted")
app = Streams(
    builder.build(), app_id=app_id, bootstrap_servers=bootstrap, checkpoint=checkpoint
)
settings = {
    "spark.master": master,
    "spark.sql.shuffle.partitions": "2",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "700m",
}
spark = session(app_id, cores=2, settings=settings)
spark.sparkContext.setLogLevel("ERROR")
if how == "once":
    app.run_once(spark)
else:
    app.run(spark)
"""
LOCAL = "local[2]"
CLUSTER = "local-cluster[2,1,1024]"
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Lives are short here: starting quickly matters more than running fast."""
ROUND = {"driver": 1, "executor": 2, "python daemon": 2, "python worker": 3, "broker": 3}
"""How often what is killed: a driver takes the longest to start."""
PARTITIONS = 2
KEYS = 7
WAIT_S = 400


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    kills: int
    records: int
    seed: int
    is_cluster: bool
    bootstrap: str | None
    """Brokers that are there already; None: one is started, and killed."""
    minutes_max: float
    """When it is time to judge, however often something was killed."""

    def victims(self) -> list[str]:
        """The kinds of one round, each as often as it is killed in it."""
        absent = set() if self.is_cluster else {"executor"}
        absent |= set() if self.bootstrap is None else {"broker"}
        return [kind for kind, times in ROUND.items() for _ in range(times) if kind not in absent]


@dataclass(frozen=True, slots=True)
class Process:
    """A process below the application."""

    pid: int
    name: str
    parent: str

    @property
    def kind(self) -> str:
        """What it is to Spark."""
        if self.name == "java":
            return "executor" if self.parent == "java" else "driver"
        if self.name.startswith("python"):
            return "python worker" if self.parent.startswith("python") else "python daemon"
        return self.name


class Application:
    """The application as a child process, started again whenever it is not there."""

    def __init__(self, folder: Path, bootstrap: str, app_id: str, master: str) -> None:
        self._file = folder / "counting.py"
        self._file.write_text(PROGRAM)
        self._log = folder / "application.log"
        self._arguments = (bootstrap, app_id, str(folder / "checkpoint"), master)
        self._home = _spark_home(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def ensure(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.starts += 1
            self._process = self._start("on")

    def _start(self, how: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(self._file), *self._arguments, how],
                stdout=log,
                stderr=log,
                env={**os.environ, "SPARK_HOME": str(self._home), "JAVA_TOOL_OPTIONS": JAVA},
            )

    def kill(self, kind: str, chance: random.Random) -> bool:
        """Kills one process of that kind, the driver with all below it; False if there is none."""
        assert self._process is not None
        below = descendants(self._process.pid)
        if kind == "driver":
            for pid in (self._process.pid, *(process.pid for process in below)):
                kill(pid)
            self._process.wait(timeout=60)
            return True
        found = [process.pid for process in below if process.kind == kind]
        if not found:
            return False
        kill(chance.choice(found))
        return True

    def finish(self) -> int:
        """Lets it work off the rest, alone."""
        self.stop()
        self._process = self._start("once")
        return self._process.wait(timeout=WAIT_S)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill("driver", random.Random(0))
        self._process = None

    def last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])


def _spark_home(folder: Path) -> Path:
    """Spark's own folder by links, in which a cluster can write what its executors say.

    Without Spark's copy of itself for Python, in an archive that every process would compile anew.
    """
    home = folder / "spark"
    home.mkdir()
    for there in Path(pyspark.__file__).parent.iterdir():
        if there.name not in ("work", "python"):
            (home / there.name).symlink_to(there)
    return home


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it died with its parent


def descendants(pid: int) -> list[Process]:
    """All processes below one."""
    names: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                head, _, tail = (folder / "stat").read_text().rpartition(")")
            except OSError:
                continue
            names[int(folder.name)] = head.partition("(")[2]
            children.setdefault(int(tail.split()[1]), []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        for child in children.get(parent, []):
            of_driver = "driver" if parent == pid else names.get(parent, "")
            found.append(Process(child, names[child], of_driver))
            waiting.append(child)
    return found


class Counted:
    """What was counted for each key, in the order it was written."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._follower = TopicFollower(topic, {"bootstrap.servers": bootstrap})
        self.by_key: dict[bytes, list[int]] = {}

    def look(self) -> int:
        """How much there is by now."""
        for record in self._follower.news():
            assert record.key is not None
            assert record.value is not None
            self.by_key.setdefault(record.key, []).append(int.from_bytes(record.value))
        return sum(map(len, self.by_key.values()))


@dataclass(slots=True)
class Verdict:
    """What was found in the end."""

    killed: Counter[str]
    starts: int
    records: int
    written: int = 0
    duplicates: int = 0
    gaps: int = 0
    out_of_order: int = 0

    @property
    def is_exact(self) -> bool:
        wrong = self.duplicates or self.gaps or self.out_of_order
        return not wrong and self.written == self.records

    def table(self) -> str:
        total = sum(self.killed.values())
        lines = ["| killed | times |", "|---|---|"]
        lines += [f"| {kind} | {count} |" for kind, count in sorted(self.killed.items())]
        numbers = (self.starts, self.records, self.written, self.duplicates, self.gaps)
        return "\n".join(
            [
                *(*lines, f"| all | {total} |", ""),
                "| starts | records | counts written | duplicates | gaps | out of order |",
                "|---|---|---|---|---|---|",
                f"| {' | '.join(map(str, numbers))} | {self.out_of_order} |",
            ]
        )


def judged(
    counted: dict[bytes, list[int]], sent: Counter[bytes], killed: Counter[str], starts: int
) -> Verdict:
    """Compares what was written with what should have been."""
    verdict = Verdict(killed, starts, sent.total())
    for key in counted.keys() | sent.keys():
        counts = counted.get(key, [])
        once = set(counts)
        verdict.written += len(counts)
        verdict.duplicates += len(counts) - len(once)
        verdict.gaps += len(set(range(1, sent[key] + 1)) - once)
        verdict.out_of_order += counts != sorted(counts)
    return verdict


@dataclass(slots=True)
class Run:
    """One series of kills."""

    plan: Plan
    bootstrap: str
    app_id: str
    application: Application
    broker: ChildBroker | None
    chance: random.Random
    sent: Counter[bytes] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)

    def go(self) -> Verdict:
        counted, count, order = Counted(self.bootstrap, f"{self.app_id}-counted"), 0, list[str]()
        until = time.monotonic() + self.plan.minutes_max * 60
        while self.killed.total() < self.plan.kills and time.monotonic() < until:
            self.produce()
            count = self.wait_for_more(counted, count)
            time.sleep(self.chance.random() * 2)
            self.produce()
            time.sleep(self.chance.random() * 4)
            if not order:
                order = self.plan.victims()
                self.chance.shuffle(order)
            kind = order.pop()
            if not self.kill(kind):
                order.insert(0, kind)  # it is just being started: again, a little later
                continue
            self.killed[kind] += 1
            print(f"{self.killed.total()}: killed {kind}; {count} counts", flush=True)
        code = self.application.finish()
        counted.look()
        if code:
            raise SystemExit(f"the last run ended with {code}:\n{self.application.last_words()}")
        return judged(counted.by_key, self.sent, self.killed, self.application.starts)

    def kill(self, kind: str) -> bool:
        if kind != "broker":
            return self.application.kill(kind, self.chance)
        assert self.broker is not None
        self.broker.kill()
        time.sleep(self.chance.random() * 2)
        self.broker.restart()
        return True

    def produce(self) -> None:
        with ottla.Producer(self.bootstrap) as producer:
            for _ in range(self.plan.records):
                key, partition = b"k%d" % self.chance.randrange(KEYS), self.chance.randrange(2)
                producer.send(f"{self.app_id}-events", key, partition=partition)
                self.sent[key] += 1

    def wait_for_more(self, counted: Counted, before: int) -> int:
        """Waits until the application has written more; how much there is then."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            self.application.ensure()
            count = counted.look()
            if count > before:
                return count
            time.sleep(0.5)
        words = self.application.last_words()
        raise SystemExit(f"nothing was written for {WAIT_S} s:\n{words}")


@contextmanager
def broker_for(plan: Plan) -> Iterator[tuple[str, ChildBroker | None]]:
    if plan.bootstrap is not None:
        yield plan.bootstrap, None
        return
    with ChildBroker() as broker:
        yield broker.bootstrap_servers, broker


def run(plan: Plan) -> Verdict:
    app_id = f"kills-{plan.seed}-{os.getpid()}"
    with (
        tempfile.TemporaryDirectory(prefix="streams-kills-", ignore_cleanup_errors=True) as name,
        broker_for(plan) as (bootstrap, broker),
    ):
        with ottla.Admin(bootstrap) as admin:
            topics = [f"{app_id}-events", f"{app_id}-counted"]
            admin.create_topics(*(ottla.NewTopic(topic, PARTITIONS) for topic in topics))
        master = CLUSTER if plan.is_cluster else LOCAL
        application = Application(Path(name), bootstrap, app_id, master)
        chance = random.Random(plan.seed)
        try:
            return Run(plan, bootstrap, app_id, application, broker, chance).go()
        finally:
            application.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cluster", action="store_true", help="executors of their own")
    parser.add_argument("--bootstrap", help="brokers that are there")
    parser.add_argument(
        "--minutes", type=float, default=600, help="judge after that, at the latest"
    )
    given = parser.parse_args()
    numbers = (given.kills, given.records, given.seed)
    verdict = run(Plan(*numbers, given.cluster, given.bootstrap, given.minutes))
    print(verdict.table())
    if not verdict.is_exact:
        raise SystemExit("not exactly once")
    print(f"{sum(verdict.killed.values())} kills: exact")


if __name__ == "__main__":
    main()
