"""The loops over records in both ways they run: as Python, and compiled where they were built."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import pytest

from ottla.records import speed
from ottla.records.accelerated import decoding, encoding


@dataclass(frozen=True)
class Loops:
    """One way to run them."""

    decoding: ModuleType
    encoding: ModuleType


def compiled_loops() -> Loops | None:
    """The compiled ones, if this installation has them."""
    try:
        return Loops(
            importlib.import_module("ottla.records.accelerated.decoding_compiled"),
            importlib.import_module("ottla.records.accelerated.encoding_compiled"),
        )
    except ImportError:
        return None


REFERENCE = Loops(decoding, encoding)
COMPILED = compiled_loops()

in_both_ways = pytest.mark.parametrize(
    "loops",
    [
        pytest.param(REFERENCE, id="reference"),
        pytest.param(
            COMPILED,
            id="compiled",
            marks=pytest.mark.skipif(COMPILED is None, reason="there was no C compiler"),
        ),
    ],
)


@contextmanager
def using(loops: Loops) -> Iterator[None]:
    """What uses the chosen loops uses these."""
    chosen = speed.decoding, speed.encoding, speed.IS_ACCELERATED
    speed.decoding, speed.encoding = loops.decoding, loops.encoding
    speed.IS_ACCELERATED = loops.decoding.IS_COMPILED
    try:
        yield
    finally:
        speed.decoding, speed.encoding, speed.IS_ACCELERATED = chosen
