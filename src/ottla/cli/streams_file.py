"""The application in a Python file: a Streams object, or a Topology to make one of."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from ottla.streams import Streams, Topology

T = TypeVar("T")
MODULE: Final = "ottla_streams_file"


def load(path: Path) -> ModuleType:
    """Runs the file as Python would; its functions travel to Spark's processes by value."""
    module = ModuleType(MODULE)
    module.__file__ = str(path)
    sys.modules[MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except Exception as error:
        place = _line_in(path, error)
        raise click.ClickException(f"{path}{place}: {type(error).__name__}: {error}") from error
    return module


def _line_in(path: Path, error: Exception) -> str:
    """The last line of the file that was running."""
    lines, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f", line {lines[-1]}" if lines else ""


def topology_in(module: ModuleType) -> Topology:
    """The topology of the file, whether it has made an application of it or not."""
    from ottla.streams import Streams, Topology

    found: list[Topology] = [one.topology for one in _all_of(module, Streams)]
    found += [one for one in _all_of(module, Topology) if one not in found]
    if not found:
        raise click.ClickException(
            f"{module.__file__} has neither a Streams object nor a Topology: end it with "
            "`topology = builder.build()`"
        )
    if len(found) > 1:
        raise click.ClickException(f"{module.__file__} has {len(found)} topologies: keep one")
    return found[0]


def application_in(module: ModuleType) -> Streams | None:
    """The Streams object of the file; None where it has only a topology."""
    from ottla.streams import Streams

    found = list(_all_of(module, Streams))
    return found[0] if found else None


def _all_of(module: ModuleType, kind: type[T]) -> list[T]:
    found: list[T] = []
    for one in vars(module).values():
        if isinstance(one, kind) and all(one is not other for other in found):
            found.append(one)
    return found
