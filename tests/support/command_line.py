"""Runs `ottla` inside the test's own process, for batteries of many short commands."""

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from tempfile import TemporaryFile

import pytest

from ottla.cli.main import run


@dataclass(frozen=True)
class Ran:
    """What one command said and returned."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Ottla = Callable[..., Ran]


def ottla_here(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    """`ottla("topics", "list")`, or with `stdin=`; a bug of the command line fails the test."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", bootstrap)
    monkeypatch.setenv("NO_COLOR", "1")

    def run_here(*arguments: str, stdin: str = "") -> Ran:
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        with TemporaryFile("w+") as typed, redirect_stdout(out), redirect_stderr(err):
            typed.write(stdin)
            typed.seek(0)
            monkeypatch.setattr(sys, "stdin", typed)
            code = int(run(list(arguments)))
        ran = Ran(code, _text(out), _text(err))
        assert "this is a bug" not in ran.err, ran.err
        return ran

    return run_here


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
