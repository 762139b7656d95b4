"""A hundred worlds and more, each from its seed: nothing acknowledged is lost, whatever happens.

Each part runs in a process of its own, just as a failing seed is run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[2] / "tools" / "simulate.py"
PARTS, LONG_PARTS = 6, 6
SEEDS_PER_PART = 20
PART_SECONDS_MAX = 280


def simulated(*options: object) -> tuple[int, str]:
    """The command's exit code and all that it printed."""
    # One process: several test processes share the cores already.
    done = subprocess.run(
        [sys.executable, str(COMMAND), *map(str, options)],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PART_SECONDS_MAX,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "part",
    [
        *range(PARTS),
        *(pytest.param(PARTS + part, marks=pytest.mark.long) for part in range(LONG_PARTS)),
    ],
)
def test_no_seed_breaks_an_invariant(part: int) -> None:
    first = part * SEEDS_PER_PART
    code, printed = simulated("--first", first, "--count", SEEDS_PER_PART, "--jobs", 1)
    assert code == 0, printed
    assert f"{SEEDS_PER_PART} seeds, 0 failed" in printed


def test_the_same_seed_is_the_same_world_in_every_process() -> None:
    code, printed = simulated("--seed", 8)
    assert code == 0, printed
    assert "trace" in printed
    assert simulated("--seed", 8) == (code, printed)
    assert simulated("--seed", 9)[1] != printed
