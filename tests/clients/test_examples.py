"""The clients' examples do what they say, run as a reader would run them."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Broker

EXAMPLES = Path(__file__).parents[2] / "examples" / "clients"
SAID = {
    "arrow_tables.py": "10000 readings from Oslo\n30000 rows polled",
    "write_and_read.py": "order 9",
    "asynchronous.py": "1000 records read",
    "transaction.py": "10 numbers doubled",
    "rebalance_listener.py": "revoked listened-0",
    "administration.py": "retention.ms = 3600000",
    "from_a_timestamp.py": "9",
    "errors.py": "MESSAGE_TOO_LARGE, the fault of the caller",
}


@pytest.mark.parametrize("program", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(ottla_broker: Broker, program: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / program), ottla_broker.bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert SAID[program] in ran.stdout
