"""The quickstart's programs do what they say, run as a reader would run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Broker

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


@pytest.mark.parametrize("program", ["confluent_client.py", "asyncio_client.py"])
def test_a_client_reads_what_it_wrote(ottla_broker: Broker, program: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(QUICKSTART / program), ottla_broker.bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [str(number) for number in range(10)]


def test_the_example_of_a_test_passes() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_with_a_broker.py"],
        cwd=QUICKSTART,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "4 passed" in ran.stdout
