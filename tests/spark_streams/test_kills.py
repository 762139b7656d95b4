"""An application whose driver, Python processes and broker are killed counts exactly once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "streams_kills.py"
KILLS = os.environ.get("OTTLA_STREAMS_KILLS", "3")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_killed_application_counts_every_record_once() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "--kills", KILLS, "--records", "200"],
        capture_output=True,
        text=True,
        timeout=880,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("exact\n")
