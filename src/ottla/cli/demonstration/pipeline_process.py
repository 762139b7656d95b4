"""The pipeline's process: `ottla streams run pipeline.py`, watched through what it prints.

It is the leader of a group of processes, Java among them; none of them outlives `running_pipeline`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from ottla.cli.streams_display import Report
from ottla.clients.address import Address

APP_ID: Final = "demo-pipeline"
FILE: Final = Path(__file__).with_name("pipeline.py")
NEEDED: Final = ("pyspark", "pyarrow", "pandas", "google")
STOP_TIMEOUT_S: Final = 10.0
JAVA_END_S: Final = 5.0
LINES_OF_TROUBLE: Final = 6
_LOOK_S: Final = 0.05


def can_run() -> bool:
    """Whether what the `spark` extra brings is there."""
    return all(importlib.util.find_spec(each) is not None for each in NEEDED)


class PipelineProcess:
    """A running pipeline. `report` is what it has said last."""

    __slots__ = ("_errors", "_process", "report")

    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self.report = Report("Spark starts")
        assert process.stdout is not None
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def trouble(self) -> str:
        """Its last complaints."""
        lines = self._errors.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LINES_OF_TROUBLE:])

    def _listen(self, output: IO[bytes]) -> None:
        with output, suppress(ValueError):  # closed meanwhile
            for line in output:
                with suppress(msgspec.DecodeError):
                    self.report = msgspec.json.decode(line, type=Report)


@contextmanager
def running_pipeline(address: Address) -> Iterator[PipelineProcess]:
    """Starts it, with a checkpoint of its own; ends it and all it has started."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    errors = folder / "errors"
    command = [sys.executable, "-m", "ottla", "streams", "run", str(FILE), "--app-id", APP_ID]
    command += ["--checkpoint", str(folder / "checkpoint"), "--bootstrap", str(address)]
    command += ["--cores", "1", "--quick-start", "--json"]
    with errors.open("wb") as complaints:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, "TMPDIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)},
            start_new_session=True,
        )
    pipeline = PipelineProcess(process, errors)
    try:
        yield pipeline
    finally:
        try:
            _end(process, is_gentle=bool(pipeline.report.queries))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _end(process: subprocess.Popen[bytes], *, is_gentle: bool) -> None:
    """Lets queries stop in order, then ends the whole group. A Java that only starts hears nobody,
    and has nothing to lose."""
    try:
        if is_gentle and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
            until = time.monotonic() + JAVA_END_S
            while _is_alive(process) and time.monotonic() < until:
                time.sleep(_LOOK_S)
    finally:  # whatever happens, Ctrl-C again included
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_alive(process: subprocess.Popen[bytes]) -> bool:
    """Whether anybody of its group is there."""
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
