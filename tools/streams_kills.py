"""Kills a running streams application, its processes and its broker, and judges what it wrote.

    python tools/streams_kills.py [--kills 10] [--records 2000] [--seed 1]

A source topic is counted by key into another topic, by `ottla streams run`, while the driver (with
its JVM), a Python process of Spark's or the broker is killed at random moments, and started again.
In the end the counts of every key must be 1, 2, 3 ... without a gap and without a repetition.
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
from pathlib import Path

import ottla
from ottla.streams.spark.topic_follower import TopicFollower
from ottla.testing import ChildBroker

PROGRAM = """
from ottla.streams import StreamsBuilder

builder = StreamsBuilder(value="str")
events = builder.stream("events").select_key(lambda _, value: value)
events.group_by_key().count(store="counts").to_stream().to("counts")
topology = builder.build()
"""
PARTITIONS = 2
KEYS = 7
WAIT_S = 400
VICTIMS = ("driver", "python", "broker")


class Victim:
    """The application as a child process, started again whenever it is not there."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._file = folder / "counting.py"
        self._file.write_text(PROGRAM)
        self._folder = folder
        self._bootstrap = bootstrap
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def command(self, *more: str) -> list[str]:
        return [
            *(sys.executable, "-m", "ottla", "streams", "run", str(self._file)),
            *("--bootstrap", self._bootstrap, "--cores", "2"),
            *("--checkpoint", str(self._folder / "checkpoint"), *more),
        ]

    def ensure(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.starts += 1
            log = (self._folder / "application.log").open("ab")
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)

    def kill(self, what: str, chance: random.Random) -> bool:
        """Kills the driver with its JVM, or one Python process below it; False if there is none."""
        assert self._process is not None
        below = descendants(self._process.pid)
        if what == "python":
            workers = [pid for pid, name in below if name.startswith("python")]
            if not workers:
                return False
            kill(chance.choice(workers))
            return True
        for pid in (self._process.pid, *(pid for pid, _ in below)):
            kill(pid)
        self._process.wait(timeout=60)
        return True

    def finish(self) -> int:
        """Lets it work off the rest, alone."""
        self.stop()
        return subprocess.run(self.command("--once"), timeout=WAIT_S, check=False).returncode

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill("driver", random.Random(0))
        self._process = None


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it died with its parent


def descendants(pid: int) -> list[tuple[int, str]]:
    """All processes below one, with their names."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                head, _, tail = (folder / "stat").read_text().rpartition(")")
            except OSError:
                continue
            name = head.partition("(")[2]
            parents.setdefault(int(tail.split()[1]), []).append((int(folder.name), name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += [child for child, _ in children]
    return found


def written(bootstrap: str) -> dict[bytes, list[int]]:
    """What was counted for each key, in order."""
    found: dict[bytes, list[int]] = {}
    for _, records in TopicFollower("counts", {"bootstrap.servers": bootstrap}).news():
        for record in records:
            assert record.key is not None
            assert record.value is not None
            found.setdefault(record.key, []).append(int.from_bytes(record.value))
    return found


def produce(bootstrap: str, chance: random.Random, count: int, expected: dict[bytes, int]) -> None:
    with ottla.Producer(bootstrap) as producer:
        for _ in range(count):
            key = b"k%d" % chance.randrange(KEYS)
            producer.send("events", key, partition=chance.randrange(PARTITIONS))
            expected[key] = expected.get(key, 0) + 1


def moved(bootstrap: str, before: int, victim: Victim) -> int:
    """Waits until the application has written more; how much there is then."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        victim.ensure()
        count = sum(map(len, written(bootstrap).values()))
        if count > before:
            return count
        time.sleep(0.5)
    raise TimeoutError(f"nothing was written for {WAIT_S} s")


def run(kills: int, records: int, seed: int) -> None:
    chance, expected = random.Random(seed), dict[bytes, int]()
    with tempfile.TemporaryDirectory(prefix="streams-kills-") as name, ChildBroker() as broker:
        bootstrap = broker.bootstrap_servers
        with ottla.Admin(bootstrap) as admin:
            admin.create_topics(
                ottla.NewTopic("events", PARTITIONS), ottla.NewTopic("counts", PARTITIONS)
            )
        victim = Victim(Path(name), bootstrap)
        done, count, order = 0, 0, chance.sample(VICTIMS, len(VICTIMS))
        try:
            while done < kills:
                produce(bootstrap, chance, records, expected)
                if done:
                    victim.ensure()
                count = moved(bootstrap, count, victim)
                time.sleep(chance.random() * 2)
                produce(bootstrap, chance, records, expected)
                time.sleep(chance.random() * 4)
                what = order.pop()
                if not order:
                    order = chance.sample(VICTIMS, len(VICTIMS))
                if what == "broker":
                    broker.kill()
                    time.sleep(chance.random() * 2)
                    broker.restart()
                elif not victim.kill(what, chance):
                    order.append(what)  # it is just being started: again, a little later
                    continue
                done += 1
                print(f"{done}: killed the {what}; {count} counts so far", flush=True)
            code = victim.finish()
        finally:
            victim.stop()
        judge(written(bootstrap), expected, code)
        print(f"{kills} kills, {victim.starts} starts, {sum(expected.values())} records: exact")


def judge(found: dict[bytes, list[int]], expected: dict[bytes, int], code: int) -> None:
    """Complains about every key that was not counted exactly once."""
    if code:
        raise SystemExit(f"the last run ended with {code}")
    wrong = {
        key: counts
        for key, counts in found.items()
        if counts != list(range(1, expected.get(key, 0) + 1))
    }
    if wrong or found.keys() != expected.keys():
        raise SystemExit(f"not exactly once: {wrong or found.keys() ^ expected.keys()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    run(given.kills, given.records, given.seed)
