"""How the demonstration shows records arriving: a live table in a terminal, else plain lines."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from ottla.clients.consumer.record import ConsumerRecord

if TYPE_CHECKING:
    from rich.table import Table

ROWS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record that was read, and how long it took from the producer to the consumer."""

    record: ConsumerRecord
    elapsed_ms: int

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """Key, value, place and time as text."""
        return (
            (self.record.key or b"").decode(),
            (self.record.value or b"").decode(),
            f"{self.record.partition}:{self.record.offset}",
            f"{max(0, self.elapsed_ms)} ms",
        )


class DemoDisplay:
    """Takes deliveries one by one and has them shown."""

    __slots__ = ("_count", "_expected", "_latest", "_refresh")

    def __init__(self, expected: int, refresh: Callable[[DemoDisplay], None] | None) -> None:
        self._expected = expected
        self._refresh = refresh
        self._count = 0
        self._latest: deque[Delivery] = deque(maxlen=ROWS_SHOWN)

    def add(self, delivery: Delivery) -> None:
        """Shows one more record."""
        self._count += 1
        self._latest.append(delivery)
        if self._refresh is None:
            click.echo("  ".join(delivery.columns))
        else:
            self._refresh(self)

    def table(self) -> Table:
        """The latest records, for a terminal."""
        from rich.table import Table

        table = Table(
            title=f"produced and consumed {self._count} of {self._expected}",
            title_justify="left",
            border_style="dim",
        )
        table.add_column("key", style="cyan", min_width=6)
        table.add_column("value", min_width=34)
        table.add_column("offset", style="magenta", min_width=6)
        table.add_column("arrived in", justify="right", style="green")
        for delivery in self._latest:
            table.add_row(*delivery.columns)
        return table


@contextmanager
def open_display(expected: int) -> Iterator[DemoDisplay]:
    """A display for `expected` records, live where somebody can watch."""
    if not sys.stdout.isatty():
        yield DemoDisplay(expected, None)
        return
    from rich.live import Live

    with Live(refresh_per_second=20) as live:
        yield DemoDisplay(expected, lambda display: live.update(display.table()))
