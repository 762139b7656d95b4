"""Runs simulated clusters from seeds, many at once, or tells the story of one.

    python tools/simulate.py --count 2000            seeds 0 to 1999, on all cores
    python tools/simulate.py --first 5000 --count 100 --jobs 1
    python tools/simulate.py --seed 4711             one seed again, exactly as it was
    python tools/simulate.py --seed 4711 --story     with everything that happened and was logged

Exits with 1 where a seed broke an invariant, and prints how to run it again. A seed means the same
world on every machine, for one version of the code.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
SEED_SECONDS_MAX = 300
PROGRESS_SEEDS = 100

sys.path.insert(0, str(ROOT / "tests"))

from simulation.driver import Outcome, simulate  # type: ignore[import-not-found]  # noqa: E402


class TookTooLong(Exception):
    """A seed that should take a second or two did not end."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.seed is not None:
        return _one(options.seed, tells=options.story)
    seeds = range(options.first, options.first + options.count)
    return _many(seeds, options.jobs)


def _one(seed: int, *, tells: bool) -> int:
    if tells:
        logging.basicConfig(level=logging.INFO, format=" " * 11 + "%(message)s", stream=sys.stdout)
    outcome = simulate(seed, on_note=print if tells else None)
    print(
        f"seed {seed}: {outcome.acknowledged} records acknowledged, {outcome.reads} read in"
        f" {outcome.seconds:.0f} simulated seconds; trace {outcome.digest}"
    )
    _complain(outcome)
    return 1 if outcome.violations else 0


def _many(seeds: range, jobs: int) -> int:
    failed: list[int] = []
    seconds = acknowledged = 0.0
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for count, outcome in enumerate(pool.map(_bounded, seeds), start=1):
            seconds += outcome.seconds
            acknowledged += outcome.acknowledged
            if outcome.violations:
                failed.append(outcome.seed)
                _complain(outcome)
            if not count % PROGRESS_SEEDS:
                print(f"{count} of {len(seeds)} seeds, {len(failed)} failed", flush=True)
    print(
        f"{len(seeds)} seeds, {len(failed)} failed; {acknowledged:.0f} records acknowledged in"
        f" {seconds / 3600:.1f} simulated hours"
    )
    return 1 if failed else 0


def _bounded(seed: int) -> Outcome:
    """One seed, in a process of the pool, for a limited time."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(SEED_SECONDS_MAX)
    try:
        return simulate(seed)
    except Exception as error:
        return Outcome(seed, (f"{type(error).__name__}: {error}",), "", 0, 0, 0.0)
    finally:
        signal.alarm(0)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLong


def _complain(outcome: Outcome) -> None:
    for violation in outcome.violations[:10]:
        print(f"seed {outcome.seed}: {violation}")
    if len(outcome.violations) > 10:
        print(f"seed {outcome.seed}: and {len(outcome.violations) - 10} more")
    if outcome.violations:
        print(f"again: python tools/simulate.py --seed {outcome.seed} --story", flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--story", action="store_true", help="print what happens, with --seed")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    # Sets of strings must have the same order in every run.
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, *sys.argv],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main())
