"""How the pipeline is shown: a live picture in a terminal, else a line when something is new."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol

import click

from ottla.cli.demonstration.cafes import CAFES
from ottla.cli.demonstration.tally import LATEST_KEPT, WINDOWS_KEPT, Tally
from ottla.cli.streams_display import Report

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

STARTING: Final = {
    "Spark starts": "Java and Spark start, which takes a while",
    "queries start": "Spark's query starts",
}
PLAIN_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is to show."""

    elapsed_s: float
    report: Report
    tally: Tally

    @property
    def stage(self) -> str:
        """What is going on, in words."""
        if not self.tally.joined:
            return STARTING.get(self.report.stage, "the first micro-batch runs")
        return "orders are joined with their cafés and counted"

    @property
    def orders_per_s(self) -> float:
        return self.tally.ordered / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def lag(self) -> int:
        """Orders that no result has come of yet."""
        return max(0, self.tally.ordered - self.tally.counted)

    @property
    def delay(self) -> str:
        """From an order to its result."""
        delays_ms = self.tally.delays_ms
        return f"{median(delays_ms) / 1000:.1f} s" if delays_ms else "-"

    @property
    def batch(self) -> str:
        """The number of the last micro-batch."""
        numbers = [query.batch_id for query in self.report.queries if query.batch_id >= 0]
        return str(max(numbers)) if numbers else "-"

    @property
    def batch_duration(self) -> str:
        """How long it took."""
        durations_ms = [query.duration_ms for query in self.report.queries]
        return f"{max(durations_ms):,} ms" if any(durations_ms) else "-"


class Dashboard(Protocol):
    """Where moments are shown."""

    def show(self, moment: Moment) -> None: ...


class PlainDashboard:
    """A line for each stage, and one every few seconds where the numbers have changed."""

    __slots__ = ("_line", "_said_s", "_stage")

    def __init__(self) -> None:
        self._stage = ""
        self._line = ""
        self._said_s = 0.0

    def show(self, moment: Moment) -> None:
        if moment.stage != self._stage:
            self._stage = moment.stage
            click.echo(f"{moment.stage} ({moment.elapsed_s:.0f} s)")
        tally = moment.tally
        line = f"{tally.ordered} orders, {tally.joined} joined, {tally.counted} counted"
        if tally.joined and line != self._line and moment.elapsed_s - self._said_s > PLAIN_EVERY_S:
            self._line, self._said_s = line, moment.elapsed_s
            click.echo(f"{line}, lag {moment.lag}")


class LiveDashboard:
    """The whole picture, drawn over the last one."""

    __slots__ = ("_live",)

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, moment: Moment) -> None:
        self._live.update(picture(moment))


def picture(moment: Moment) -> RenderableType:
    """Numbers, the windows, and the latest rows of the join."""
    from rich.columns import Columns
    from rich.console import Group

    return Group(
        _headline(moment),
        "",
        _numbers(moment),
        "",
        Columns([_windows(moment.tally), _latest(moment.tally)], padding=(0, 3)),
    )


def _headline(moment: Moment) -> RenderableType:
    from rich.spinner import Spinner
    from rich.text import Text

    minutes, seconds = divmod(int(moment.elapsed_s), 60)
    text = Text(f"{minutes}:{seconds:02}  {moment.stage}", style="bold")
    if moment.tally.joined:
        return Text.assemble(("● ", "green"), text)
    spinner = Spinner("dots", text=text, style="yellow")
    spinner.start_time = 0.0  # a new one a look: all must turn by the same clock
    return spinner


def _numbers(moment: Moment) -> Table:
    from rich.table import Table

    tally = moment.tally
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    columns = {
        "ordered": f"{tally.ordered:,}",
        "orders/s": f"{moment.orders_per_s:.1f}",
        "joined": f"{tally.joined:,}",
        "counted": f"{tally.counted:,}",
        "lag": f"{moment.lag:,}",
        "order to result": moment.delay,
        "micro-batch": moment.batch,
        "took": moment.batch_duration,
    }
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(*columns.values(), style="bold")
    return table


def _windows(tally: Tally) -> Table:
    from rich.table import Table

    table = Table(title="Orders in 10 s", title_justify="left", border_style="dim")
    table.add_column("café", style="cyan", min_width=6)
    starts = sorted(tally.windows)
    for number in range(WINDOWS_KEPT):
        name = _clock(starts[number]) if number < len(starts) else ""
        style = "bold" if number == len(starts) - 1 else "dim"
        table.add_column(name, justify="right", min_width=8, style=style)
    for key, cafe in CAFES.items():
        counts = [str(tally.windows[start].get(key, "")) for start in starts]
        table.add_row(cafe.city, *counts, *[""] * (WINDOWS_KEPT - len(starts)))
    return table


def _latest(tally: Tally) -> Table:
    from rich.table import Table

    table = Table(title="Latest orders, with their cafés", title_justify="left", border_style="dim")
    table.add_column("order", justify="right", style="magenta", min_width=5)
    table.add_column("item", min_width=13)
    table.add_column("café", style="cyan", min_width=14)
    table.add_column("after", justify="right", style="green", min_width=5)
    for arrival in tally.latest:
        row = arrival.order
        place = f"{row.barista}, {row.city}"
        table.add_row(str(row.order), row.item, place, f"{arrival.delay_ms / 1000:.1f} s")
    for _ in range(LATEST_KEPT - len(tally.latest)):
        table.add_row("", "", "", "")
    return table


def _clock(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%H:%M:%S")


@contextmanager
def open_dashboard() -> Iterator[Dashboard]:
    """A dashboard, live where somebody can watch."""
    if not sys.stdout.isatty():
        yield PlainDashboard()
        return
    from rich.live import Live

    with Live(refresh_per_second=8) as live:
        yield LiveDashboard(live)
