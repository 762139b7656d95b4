"""Real Spark programs, killed with their JVM in the middle of a micro-batch, and started again."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spark.topics import fill, make_topic, values_of

NewName = Callable[[], str]
PROGRAM = Path(__file__).parent / "pipeline.py"
WAIT_S = 200
COUNT = 50


def run(*arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        timeout=WAIT_S,
        capture_output=True,
        check=False,
    )
    return done.returncode


@pytest.mark.slow
def test_a_driver_killed_before_and_after_the_decision_is_followed_by_one_that_knows(
    bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source, target = make_topic(bootstrap, new_name()), make_topic(bootstrap, new_name())
    values = [b"%d" % number for number in range(COUNT)]
    fill(bootstrap, source, values[: COUNT // 2], partition=0)
    fill(bootstrap, source, values[COUNT // 2 :], partition=1)
    checkpoint = str(tmp_path / "checkpoint")

    for step in ("append", "end"):
        assert run(bootstrap, source, target, checkpoint, step) != 0
        assert Path(checkpoint + ".died").read_text() == step
        Path(checkpoint + ".died").unlink()
    assert run(bootstrap, source, target, checkpoint) == 0

    assert sorted(values_of(bootstrap, target)) == sorted(values)
