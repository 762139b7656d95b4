"""What is under way goes on when the broker comes back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.eventually import eventually


def start(address: str, *arguments: str, output: Path) -> subprocess.Popen[str]:
    with output.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments],
            stdin=subprocess.PIPE,
            stdout=file,
            text=True,
            env={**os.environ, "OTTLA_BOOTSTRAP": address},
        )


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_producing_and_following_survive_a_restart(own_broker, tmp_path: Path, end: str) -> None:
    broker = own_broker()
    sent, read = tmp_path / "sent", tmp_path / "read"
    address = broker.bootstrap_servers
    with start(address, "produce", "t", "--create", "--offsets", output=sent) as producing:
        assert producing.stdin is not None
        producing.stdin.write("0\n")
        producing.stdin.flush()
        eventually(lambda: sent.read_text() != "", "the first record is acknowledged")
        with start(address, "consume", "t", "--follow", "--max", "3", output=read) as following:
            eventually(lambda: read.read_text() == "0\n", "the first record is read")
            getattr(broker, end)()
            producing.stdin.write("1\n")
            producing.stdin.flush()
            broker.start()
            producing.stdin.write("2\n")
            producing.stdin.close()
            assert producing.wait(timeout=60) == 0
            assert following.wait(timeout=60) == 0
    assert read.read_text() == "0\n1\n2\n"
