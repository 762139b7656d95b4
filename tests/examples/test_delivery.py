"""The examples of delivery guarantees show what they say: each is run as a user would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS_MAX = 100


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "at_most_once.py",
            "at most once: 8 payments, 7 receipts\n  lost: receipt for payment 4\n  twice: none\n",
        ),
        (
            "at_least_once.py",
            "at least once: 8 payments, 9 receipts\n  lost: none\n  twice: receipt for payment 4\n",
        ),
        ("exactly_once.py", "exactly once: 8 payments, 8 receipts\n  lost: none\n  twice: none\n"),
        (
            "exactly_once_sqlite.py",
            "exactly once, in SQLite: 8 payments, 8 receipts\n  lost: none\n  twice: none\n",
        ),
    ],
)
def test_the_crash_tells_the_guarantees_apart(script: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / "delivery" / script)],
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY / "src")),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == said
