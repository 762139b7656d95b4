"""A client's program as a process: one request in, lines of JSON out, always within some time.

What a request and an answer hold is in the README beside this file.
"""

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

ANSWER_SECONDS_MAX = 60.0
STDERR_CHARACTERS_SHOWN = 2000

Line = dict[str, Any]


class Refused(Exception):
    """The client reported an error, under the name by which it knows it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Program:
    """How to run a client's program against a broker."""

    command: Sequence[str]
    bootstrap: str

    def ask(self, command: str, request: Mapping[str, object]) -> list[Line]:
        """All lines of a program that ends by itself."""
        with self.start(command, request) as running:
            running.end_input()
            lines = []
            while (line := running.next_line()) is not None:
                lines.append(line)
            running.wait_ended()
            return lines

    def start(self, command: str, request: Mapping[str, object]) -> "Running":
        """The program at work, to be left as a context."""
        return Running([*self.command, command, self.bootstrap], request)


class Running:
    """A program at work."""

    def __init__(self, command: Sequence[str], request: Mapping[str, object]) -> None:
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the context
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                pass

    def next_line(self) -> Line | None:
        """The next line, waited for; None where the program has ended."""
        try:
            text = self._lines.get(timeout=ANSWER_SECONDS_MAX)
        except queue.Empty:
            raise AssertionError(f"no answer in time. {self._words()}") from None
        if text is None:
            return None
        line: Line = json.loads(text)
        if "error" in line:
            raise Refused(line["error"], line["message"])
        return line

    def end_input(self) -> None:
        """Tell a program that goes on for ever to leave; others have their request already."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait_ended(self) -> None:
        """Return when the program has ended well."""
        try:
            code = self._process.wait(ANSWER_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end. {self._words()}") from None
        assert code == 0, f"it ended with {code}. {self._words()}"

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            self._lines.put(text)
        self._lines.put(None)

    def _words(self) -> str:
        self._stderr.seek(0)
        return f"On stderr: {self._stderr.read()[-STDERR_CHARACTERS_SHOWN:]}"
