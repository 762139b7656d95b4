"""Hurts a real cluster under load, again and again, and tells what became of every record.

    python tools/faults.py                          each fault once
    python tools/faults.py --times 20               longer
    python tools/faults.py --only ZooKeeper         faults with this in their name
    python tools/faults.py --list

Three brokers, three replicas of everything, two in sync at least; one idempotent producer of
librdkafka and one of Ottla's own, and a reader. Prints a table; exit code 1 says that an invariant
broke, and which. The logs of a failed run stay where the output says.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
from ottla.errors import OttlaError  # noqa: E402
from support.faults.battery import (  # type: ignore[import-not-found]  # noqa: E402
    FAULTS,
    a_cluster_for,
    run_fault,
)
from support.faults.disks import CannotMount  # type: ignore[import-not-found]  # noqa: E402
from support.faults.judge import Verdict  # type: ignore[import-not-found]  # noqa: E402


@dataclass
class Row:
    """All runs of one fault."""

    fault: str
    runs: int = 0
    acknowledged: int = 0
    lost: int = 0
    duplicated: int = 0
    failed: int = 0
    longest_outage_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.runs += 1
        self.acknowledged += verdict.acknowledged
        self.lost += verdict.lost
        self.duplicated += verdict.duplicated
        self.failed += verdict.failed
        self.longest_outage_seconds = max(
            self.longest_outage_seconds, verdict.longest_outage_seconds
        )
        self.problems += verdict.problems

    def markdown(self) -> str:
        cells = (
            self.fault,
            str(self.runs),
            f"{self.acknowledged:,}",
            str(self.lost),
            str(self.duplicated),
            f"{self.longest_outage_seconds:.1f} s",
        )
        return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    chosen = [name for name in FAULTS if options.only.lower() in name.lower()]
    if options.list or not chosen:
        print("\n".join(FAULTS))
        return 0 if chosen else 2
    rows = [_run(name, options.times, options.seed) for name in chosen]
    print("\n| fault | times run | records acknowledged | lost | duplicated | longest outage |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(row.markdown())
    problems = [f"{row.fault}: {problem}" for row in rows for problem in row.problems]
    print("\n".join(["", *problems]) if problems else "\nEvery invariant held.")
    return 1 if problems else 0


def _run(name: str, times: int, seed: int) -> Row:
    """One cluster a fault: what one run leaves behind is part of the next one's weather."""
    row = Row(name)
    folder = Path(tempfile.mkdtemp(prefix="ottla-faults-"))
    try:
        with a_cluster_for(FAULTS[name]) as cluster:
            for number in range(times):
                topic = f"orders-{number}"
                verdict = run_fault(
                    cluster, FAULTS[name], topic, folder / topic, seed=seed + number
                )
                row.add(verdict)
                told = "; ".join(verdict.problems) or "fine"
                print(f"{name}, run {number + 1} (seed {seed + number}): {told}", flush=True)
    except CannotMount as error:
        print(f"{name}: left out, {error}", flush=True)
    except (AssertionError, RuntimeError, OttlaError) as error:
        row.problems.append(f"{type(error).__name__}: {error}")
        print(f"{name}: {error} (journals in {folder})", flush=True)
    return row


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1, help="runs of each fault")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults with this in the name")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--list", action="store_true", help="only name the faults")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
