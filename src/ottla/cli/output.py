"""What commands print: tables for people, tab-separated lines for pipes, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import click
import msgspec

if TYPE_CHECKING:
    from rich.table import Table


def print_json(value: object, *, one_line: bool = False) -> None:
    """One JSON document, indented for a terminal, on one line for a pipe or where that is asked."""
    encoded = msgspec.json.encode(value)
    if sys.stdout.isatty() and not one_line:
        encoded = msgspec.json.format(encoded, indent=2)
    click.echo(encoded.decode())


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """A table; columns whose values are all numbers are aligned to the right."""
    texts = [[_text(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for row in (list(columns), *texts):
            click.echo("\t".join(row))
        return
    from rich.console import Console

    Console().print(table_of(columns, texts, title=title))


def table_of(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> Table:
    """A table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    texts = [[_text(value) for value in row] for row in rows]
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(texts) and all(_is_number(row[index]) for row in texts)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=index == 0)
    for row in texts:
        table.add_row(*(Text(text) for text in row))
    return table


def bytes_text(size_bytes: int) -> str:
    """A size as people say it."""
    if size_bytes < 0:
        return "?"
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit takes everything")


def time_text(timestamp_ms: int) -> str:
    """A moment in ISO form, UTC, to the millisecond; a dash where there is none."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, noun: str) -> str:
    """`1 record`, `2,000 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    return "-" if value is None else str(value)


def _is_number(text: str) -> bool:
    return text.replace(",", "").lstrip("+-").isdigit() or text == "-"
