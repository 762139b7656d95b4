"""`ottla groups lag`: how far groups are behind, once or live."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import click

from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.duration import duration_text
from ottla.cli.lag_report import GroupLag, lag_json, progress
from ottla.cli.message import note, say
from ottla.cli.output import counted, print_json, print_table, table_of, time_text
from ottla.cli.session import FOLLOW_RETRIES, with_client
from ottla.cli.topic_selection import TopicSelection, matches, parse_selection
from ottla.clients.client import Client
from ottla.clients.group_offsets import group_lag
from ottla.clients.groups import describe_group, list_groups

COLUMNS: Final = ["group", "topic", "partition", "committed", "end", "lag", "client"]
TOTAL_COLUMNS: Final = ["group", "topic", "partitions", "lag"]
WATCH_COLUMNS: Final = ["group", "topic", "lag", "read/s", "written/s", "caught up in"]


@dataclass(frozen=True, slots=True)
class Question:
    """Whose lag, and where."""

    groups: tuple[str, ...]
    """None named: all."""
    selections: tuple[TopicSelection, ...]


@click.command(short_help="Show how many records groups have still to read.")
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--topic", "-t", "topics", multiple=True, metavar="TOPIC[:PARTITIONS]", help="Only.")
@click.option("--total", is_flag=True, help="One line a topic instead of one a partition.")
@click.option("--watch", "-w", is_flag=True, help="Look again and again until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks.",
)
@click.option("--times", type=click.IntRange(min=1), metavar="N", help="Stop after so many looks.")
@json_option
@broker_options
def lag(
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    total: bool,
    watch: bool,
    interval: float,
    times: int | None,
    as_json: bool,
) -> None:
    """Show how many records groups have still to read; of all groups if none is named.

    \b
    ottla groups lag billing
    ottla groups lag billing shipping --total
    ottla groups lag billing --watch
    """
    question = Question(groups, tuple(parse_selection(text) for text in topics))
    if watch or times is not None:
        _watch(question, interval, times, as_json=as_json)
        return
    found = with_client(lambda client: look(client, question))
    if as_json:
        print_json([lag_json(each) for each in found])
        return
    if total:
        print_table(TOTAL_COLUMNS, [row for each in found for row in _total_rows(each)])
    else:
        print_table(COLUMNS, [row for each in found for row in _partition_rows(each)])
    for each in found:
        note(f"{each.group.id} ({each.group.state}): {_sum_text(each)}")


def _sum_text(lag_: GroupLag) -> str:
    known = [row for row in lag_.rows if row.lag is not None]
    text = f"{counted(lag_.total, 'record')} behind in {counted(len(known), 'partition')}"
    unknown = len(lag_.rows) - len(known)
    return f"{text}, not known in {unknown}" if unknown else text


async def look(client: Client, question: Question) -> list[GroupLag]:
    """The lag of the groups now."""
    groups = question.groups or tuple(each.id for each in await list_groups(client))
    return list(
        await asyncio.gather(
            *(_look_at(client, group, question) for group in dict.fromkeys(groups))
        )
    )


async def _look_at(client: Client, group: str, question: Question) -> GroupLag:
    described = await describe_group(client, group)
    rows = await group_lag(client, group, also=described.owners())
    chosen = (row for row in rows if matches(question.selections, row.partition))
    return GroupLag(described, tuple(chosen), time.monotonic())


def _partition_rows(lag_: GroupLag) -> Iterator[tuple[object, ...]]:
    owners = lag_.group.owners()
    for row in lag_.rows:
        owner = owners.get(row.partition)
        place = (lag_.group.id, row.partition.topic, row.partition.partition)
        yield (*place, row.committed, row.end, row.lag, owner.client_id if owner else None)


def _total_rows(lag_: GroupLag) -> Iterator[tuple[object, ...]]:
    for topic in lag_.topics:
        part = lag_.of_topic(topic)
        yield (lag_.group.id, topic, len(part.rows), part.total)


def _watch(question: Question, interval_s: float, times: int | None, *, as_json: bool) -> None:
    async def work(client: Client) -> None:
        before: list[GroupLag] = []
        looks = 0
        with _display(as_json=as_json) as show:
            while times is None or looks < times:
                if looks:
                    await asyncio.sleep(interval_s)
                now = await look(client, question)
                show(before, now)
                before = now
                looks += 1

    with_client(work, retries=FOLLOW_RETRIES)


Show = Callable[[list[GroupLag], list[GroupLag]], None]


@contextmanager
def _display(*, as_json: bool) -> Iterator[Show]:
    """A live table in a terminal; else a line a topic and look, under one line of names."""
    if as_json:
        yield lambda _, now: _print_line_json(now)
        return
    if not sys.stdout.isatty():
        say("\t".join(["time", *WATCH_COLUMNS]))
        yield _print_lines
        return
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        yield lambda before, now: live.update(
            table_of(WATCH_COLUMNS, _watch_rows(before, now)), refresh=True
        )


def _print_line_json(now: list[GroupLag]) -> None:
    time_now = time_text(time.time_ns() // 1_000_000)
    print_json({"time": time_now, "groups": [lag_json(each) for each in now]}, one_line=True)
    sys.stdout.flush()


def _print_lines(before: list[GroupLag], now: list[GroupLag]) -> None:
    time_now = time_text(time.time_ns() // 1_000_000)
    for row in _watch_rows(before, now):
        say("\t".join([time_now, *("-" if cell is None else str(cell) for cell in row)]))
    sys.stdout.flush()


def _watch_rows(before: list[GroupLag], now: list[GroupLag]) -> list[tuple[object, ...]]:
    earlier = {each.group.id: each for each in before}
    rows: list[tuple[object, ...]] = []
    for each in now:
        for topic in each.topics:
            part = each.of_topic(topic)
            last = earlier.get(each.group.id)
            moved = None if last is None else progress(last.of_topic(topic), part)
            if moved is None:
                rows.append((each.group.id, topic, part.total, None, None, None))
                continue
            left_s = moved.seconds_left(part.total)
            rows.append(
                (
                    each.group.id,
                    topic,
                    part.total,
                    round(moved.read_per_s),
                    round(moved.written_per_s),
                    "never" if left_s is None else duration_text(int(left_s * 1000)),
                )
            )
    return rows
