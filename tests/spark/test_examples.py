"""The connector's examples do what they say, run as a reader would run them."""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import ChildBroker

EXAMPLES = Path(__file__).parents[2] / "examples" / "spark"
SAID = {
    "batch.py": "anna has ordered 3\nben has ordered 1\n",
    "windowed_counts.py": '{"page":"/home","start":"2023-11-14T22:14:00.000Z","count":40}',
}


def test_no_example_is_forgotten() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_says_what_it_did(name: str, tmp_path: Path) -> None:
    with ChildBroker() as broker:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), broker.bootstrap_servers],
            timeout=200,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert SAID[name] in done.stdout
