"""Sends a broker everything it should not be sent, beside a normal client, and tells who suffered.

    python tools/fuzz.py                       five minutes, with a new seed
    python tools/fuzz.py --seconds 30
    python tools/fuzz.py --seed 4711           the same attacks in the same order for each attacker

Every API in every version with values by chance or damaged, batches that lie, bombs, long lists,
half-open and slow connections. Exit code 1 says that the broker died, logged a traceback, or did
not answer its normal client; what a quiet machine should show: no stall above 0.5 s.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "src")]
from fuzzing.attackers import TOPICS, Attacker  # noqa: E402

from support.batches import batch  # type: ignore[import-not-found]  # noqa: E402
from support.broker_process import BrokerProcess  # type: ignore[import-not-found]  # noqa: E402
from support.requests import (  # type: ignore[import-not-found]  # noqa: E402
    FetchPlace,
    a_topic,
    fetch_one,
    produce,
)
from support.wire import Connection  # type: ignore[import-not-found]  # noqa: E402

ATTACKERS = 4
SHOWN_MAX = 4_000
SETTINGS = {"auto.create.topics.enable": "false"}
CONFIGS = {"fuzz-compact": {"cleanup_policy": "compact"}, "fuzz-gzip": {"compression_type": "gzip"}}


@dataclass
class Report:
    """What a run has shown."""

    seed: int
    seconds: float
    sent: Counter[str]
    rounds: int
    longest_stall_seconds: float
    resident_bytes_max: int
    tracebacks: int
    trouble: str

    def lines(self) -> list[str]:
        attacks = ", ".join(f"{count} {kind}" for kind, count in sorted(self.sent.items()))
        return [
            f"seed {self.seed}, {self.seconds:.0f} s: {attacks}",
            f"client: {self.rounds} rounds, {self.longest_stall_seconds:.2f} s longest stall",
            f"broker: {self.tracebacks} tracebacks, {self.resident_bytes_max >> 20} MiB at most",
            *([self.trouble[:SHOWN_MAX]] if self.trouble else []),
        ]


class NormalClient(threading.Thread):
    """Produces a record and reads it back, and notes the longest it ever had to wait."""

    def __init__(self, bootstrap: str, end: float) -> None:
        super().__init__(name="normal client")
        self._servers = bootstrap
        self._end = end
        self.rounds = 0
        self.longest_seconds = 0.0
        self.trouble = ""

    def run(self) -> None:
        try:
            with Connection(self._servers, timeout_seconds=120) as connection:
                topic = a_topic(connection, "normal")
                while monotonic() < self._end:
                    self._work(connection, topic)
        except Exception as error:
            self.trouble = f"the normal client failed: {error!r}"

    def _work(self, connection: Connection, topic: str) -> None:
        asked = monotonic()
        answer = produce(connection, {(topic, 0): batch([b"good"])})[topic, 0]
        answered = monotonic()
        fetched = fetch_one(connection, FetchPlace(topic, 0, self.rounds))
        if answer.error_code or answer.base_offset != self.rounds or not fetched.records:
            raise RuntimeError(f"wrong answer in round {self.rounds}: {answer}")
        longest = max(answered - asked, monotonic() - answered)
        self.longest_seconds = max(self.longest_seconds, longest)
        self.rounds += 1


def fuzz(seed: int, seconds: float, folder: Path) -> Report:
    """Attacks a broker of its own for so long."""
    broker = BrokerProcess(folder / "data", settings=SETTINGS)
    broker.start()
    try:
        with Connection(broker.bootstrap_servers) as connection:
            for topic in TOPICS:
                a_topic(connection, topic, **CONFIGS.get(topic, {}))
        return _attack(broker, seed, seconds)
    finally:
        broker.close()


def _attack(broker: BrokerProcess, seed: int, seconds: float) -> Report:
    end = monotonic() + seconds
    client = NormalClient(broker.bootstrap_servers, end)
    address = ("127.0.0.1", broker.port)
    attackers = [Attacker(address, f"{seed}-{number}", end) for number in range(ATTACKERS)]
    for thread in (client, *attackers):
        thread.start()
    resident = 0
    while client.is_alive() or any(attacker.is_alive() for attacker in attackers):
        client.join(0.25)
        if broker.is_alive:
            resident = max(resident, broker.resident_bytes())
        elif monotonic() > end + seconds:
            break
    said = broker.errors()
    trouble = client.trouble if broker.is_alive else "the broker has died"
    if "Traceback" in said:
        trouble = f"{trouble}\n{said[said.find('Traceback') - 300 :]}".strip()
    sent = sum((attacker.sent for attacker in attackers), Counter[str]())
    return Report(
        seed,
        seconds,
        sent,
        client.rounds,
        client.longest_seconds,
        resident,
        said.count("Traceback"),
        trouble,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--seed", type=int, help="of a run before")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    seconds = options.seconds or options.minutes * 60
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ottla-fuzz-") as folder:
        report = fuzz(seed, seconds, Path(folder))
    print("\n".join(report.lines()))
    return 1 if report.trouble else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
