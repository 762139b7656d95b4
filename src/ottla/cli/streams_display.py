"""How a running application is shown: a live table in a terminal, else a line a micro-batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import click

from ottla.cli.message import note
from ottla.cli.output import bytes_text, print_json
from ottla.streams.spark.progress import QueryProgress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of an application: what it does, and how its queries do. A line of JSON."""

    stage: str
    queries: tuple[QueryProgress, ...] = ()


class Display(Protocol):
    """Where reports go."""

    def show(self, report: Report) -> None: ...


def table(app_id: str, queries: tuple[QueryProgress, ...]) -> Table:
    """All queries with their numbers."""
    from rich.table import Table

    shown = Table(title=app_id, title_justify="left", border_style="dim")
    shown.add_column("query", style="cyan", no_wrap=True)
    shown.add_column("reads", overflow="fold", min_width=12)
    for name in ("batch", "records", "records/s", "took", "lag", "state"):
        shown.add_column(name, justify="right", no_wrap=True)
    for one in queries:
        topics = [topic.removeprefix(f"{app_id}-") for topic in one.topics]  # its own are long
        shown.add_row(one.name, "\n".join(topics), *numbers(one))
    return shown


def numbers(one: QueryProgress) -> tuple[str, ...]:
    """Batch, records, rate, duration, lag and state as text; dashes before the first batch."""
    if one.batch_id < 0:
        return ("-",) * 6
    return (
        str(one.batch_id),
        f"{one.records:,}",
        f"{one.records_per_s:,.0f}",
        f"{one.duration_ms:,} ms",
        f"{one.lag:,}",
        bytes_text(one.state_bytes) if one.state_bytes else "-",
    )


class LiveTable:
    """What is being done, with a sign of life, until there are queries; then their table."""

    __slots__ = ("_app_id", "_live", "_stage")

    def __init__(self, app_id: str, live: Live) -> None:
        self._app_id = app_id
        self._live = live
        self._stage = ""

    def show(self, report: Report) -> None:
        if report.queries:
            self._live.update(table(self._app_id, report.queries))
        elif report.stage != self._stage:
            self._live.update(_busy(report.stage))
        self._stage = report.stage


def _busy(stage: str) -> RenderableType:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress.add_task(f"{stage} …", total=None)
    return progress


class PlainLines:
    """A line for each stage and each micro-batch that was not shown yet."""

    __slots__ = ("_shown", "_stage")

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}
        self._stage = ""

    def show(self, report: Report) -> None:
        if report.stage != self._stage:
            note(report.stage)
            self._stage = report.stage
        for one in report.queries:
            if one.records and self._shown.get(one.name, -1) < one.batch_id:
                self._shown[one.name] = one.batch_id
                batch, records, _, took, lag, _ = numbers(one)
                click.echo(f"{one.name}: batch {batch}, {records} records in {took}, lag {lag}")


class JsonLines:
    """Every report that says something new, as a line of JSON."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Report | None = None

    def show(self, report: Report) -> None:
        if report != self._last:
            self._last = report
            print_json(report, one_line=True)
            sys.stdout.flush()


@contextmanager
def open_display(app_id: str, *, as_json: bool = False) -> Iterator[Display]:
    """Where reports go, live where somebody can watch."""
    if as_json or not sys.stdout.isatty():
        yield JsonLines() if as_json else PlainLines()
        return
    from rich.live import Live

    with Live(refresh_per_second=8) as live:
        yield LiveTable(app_id, live)
