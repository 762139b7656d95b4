"""Runs `ottla` as a user's shell does, against the broker under test."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from support.command_line import Ottla, Ran

SECONDS_MAX = 120


@pytest.fixture
def ottla(bootstrap: str) -> Ottla:
    """`ottla("topics", "list")`, or with `stdin=`; must not print a traceback whatever happens."""
    environment = {**os.environ, "OTTLA_BOOTSTRAP": bootstrap, "NO_COLOR": "1"}

    def run(*arguments: str, stdin: str = "") -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            env=environment,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def topic(ottla: Ottla, new_name: Callable[[], str]) -> str:
    """A topic of this test's own, with three partitions."""
    name = new_name()
    assert ottla("topics", "create", name, "--partitions", "3").code == 0
    return name
