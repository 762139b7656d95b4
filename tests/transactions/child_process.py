"""Python programs of this battery as child processes, to be stopped, frozen and killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
END_SECONDS_MAX = 40.0


class ChildProgram:
    """A running program; what it says on standard error is kept in a file."""

    def __init__(self, program: str, arguments: list[str], log: Path) -> None:
        self.log = log
        path = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(TESTS / "transactions" / program), *arguments],
                env=dict(os.environ, PYTHONPATH=path),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end, so long at most."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def exit_code(self) -> int:
        """Wait for its end, and return how it ended; its last words where it failed."""
        assert self.ends_within(END_SECONDS_MAX), f"{self.log.stem} hangs: {self.last_words()}"
        return self._process.returncode

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2_000:]

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._process.kill()
        self._process.wait(END_SECONDS_MAX)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.exit_code()
