"""How a running application is shown: a live table in a terminal, else a line a micro-batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from ottla.streams.spark.progress import QueryProgress

Show = Callable[[list["QueryProgress"]], None]


def table(app_id: str, queries: list[QueryProgress]) -> Table:
    """All queries with their numbers."""
    from rich.table import Table

    shown = Table(title=app_id, title_justify="left", border_style="dim")
    shown.add_column("query", style="cyan")
    shown.add_column("reads")
    for name in ("batch", "records", "records/s", "last batch", "lag", "state"):
        shown.add_column(name, justify="right")
    for one in queries:
        shown.add_row(one.name, ", ".join(one.topics), *numbers(one))
    return shown


def numbers(one: QueryProgress) -> tuple[str, ...]:
    """Batch, records, rate, duration, lag and state as text; dashes before the first batch."""
    if one.batch_id < 0:
        return ("-",) * 6
    state = f"{one.state_bytes / 1024:,.0f} KiB" if one.state_bytes else "-"
    return (
        str(one.batch_id),
        f"{one.records:,}",
        f"{one.records_per_s:,.0f}",
        f"{one.duration_ms:,} ms",
        f"{one.lag:,}",
        state,
    )


class PlainLines:
    """A line for each micro-batch that was not shown yet."""

    __slots__ = ("_shown",)

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def __call__(self, queries: list[QueryProgress]) -> None:
        for one in queries:
            if one.records and self._shown.get(one.name, -1) < one.batch_id:
                self._shown[one.name] = one.batch_id
                batch, records, rate, took, lag, _ = numbers(one)
                click.echo(f"{one.name}: batch {batch}, {records} records in {took}, lag {lag}")
                del rate


@contextmanager
def open_display(app_id: str) -> Iterator[Show]:
    """Where progress goes, live where somebody can watch."""
    if not sys.stdout.isatty():
        yield PlainLines()
        return
    from rich.live import Live

    with Live(refresh_per_second=4) as live:
        yield lambda queries: live.update(table(app_id, queries))
