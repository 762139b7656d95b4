"""A simulated cluster lives through the same story whether its modules are compiled or Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.compiled import FOLDER, LISTING

SIMULATE = Path(__file__).parents[2] / "tools" / "simulate.py"


def trace(seed: int, *, pure: bool) -> str:
    """A digest of all that happened, and how it ended."""
    done = subprocess.run(
        [sys.executable, str(SIMULATE), "--seed", str(seed)],
        env={**os.environ, "OTTLA_PURE": "1" if pure else "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(not Path(FOLDER, LISTING).exists(), reason="nothing was compiled")
@pytest.mark.parametrize("seed", [3, 31, 77])
def test_compiled_or_not_a_seed_tells_the_same_story(seed: int) -> None:
    compiled = trace(seed, pure=False)

    assert f"seed {seed}: " in compiled
    assert compiled == trace(seed, pure=True)
