"""`ottla demo` with its pipeline on a real Spark, as a user runs it."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from support.eventually import eventually

SECONDS_MAX = 580
MARK = "OTTLA_DEMONSTRATION"


def started(folder: Path, *options: str, mark: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ottla", "demo", "--listen", "127.0.0.1:0"]
    return subprocess.Popen(
        [*command, "--data", str(folder / "data"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, MARK: mark},
    )


def marked(mark: str) -> list[str]:
    """The command lines of all processes that were started from one with the mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_order_is_joined_and_counted_once_and_the_command_ends(tmp_path: Path) -> None:
    with started(tmp_path, "--once") as demo:
        out, errors = demo.communicate(timeout=SECONDS_MAX)
    assert (demo.returncode, errors) == (0, "")
    assert out.count("celsius") == 30
    assert out.splitlines()[-1] == "Right: 60 orders, each joined once and counted once."


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_ctrl_c_while_spark_starts_leaves_no_process_behind(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with started(tmp_path, mark=mark) as demo:
        assert demo.stdout is not None
        while "Java and Spark start" not in demo.stdout.readline():
            assert demo.poll() is None
        assert len(marked(mark)) >= 3  # itself, the broker, the pipeline
        demo.send_signal(signal.SIGINT)
        out, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors) == (0, "")
    assert out.endswith("Stopping.\n")
    eventually(lambda: not marked(mark), "the end of every process")
