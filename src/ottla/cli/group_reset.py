"""`ottla groups reset`, `export` and `import`: set where a group goes on.

What would be changed is shown first, always; a group with members is left alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.cli.complaint import fix_for
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import note, say, say_error
from ottla.cli.offset_file import OffsetFormat, read_offsets, write_offsets
from ottla.cli.offset_plan import Committed, PlannedOffset, plan_exactly, plan_shift
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.reading import offsets_at
from ottla.cli.session import with_client
from ottla.cli.starting_point import StartingPoint, StartKind, parse_starting_point
from ottla.cli.topic_selection import TopicSelection, matches, parse_selection, select_partitions
from ottla.cli.topics import confirm
from ottla.clients.client import Client
from ottla.clients.failures import GroupHasMembers, GroupNotFound
from ottla.clients.group_offsets import (
    CommittedOffset,
    Ranges,
    by_topic,
    commit_offsets,
    committed_offsets,
    ranges_of,
)
from ottla.clients.groups import describe_group
from ottla.model.ids import Offset, TopicPartition

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wish:
    """Where a group should go on: one of the first three, in the selected partitions."""

    place: StartingPoint | None = None
    shift: int | None = None
    offsets: Committed | None = None
    selections: tuple[TopicSelection, ...] = ()
    """None selected: wherever the group has committed."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How to go about it."""

    dry_run: bool
    yes: bool
    create: bool
    as_json: bool


def _manner_options(command: Command) -> Command:
    options: tuple[Callable[[Command], Command], ...] = (
        click.option("--dry-run", is_flag=True, help="Only show what would be changed."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--create", is_flag=True, help="Make the group if there is none."),
        json_option,
        broker_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("group")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="A topic, or some of its partitions: orders:0,2,5-7. May be repeated.",
)
@click.option("--all-topics", is_flag=True, help="Wherever the group has committed.")
@click.option(
    "--to",
    metavar="WHERE",
    help="earliest, latest, an offset (42), the last of each partition (-10), an age (-1h), "
    "a time (2026-01-31T12:00), or milliseconds (@1767225600000).",
)
@click.option("--shift", type=int, metavar="N", help="So many records on; back if negative.")
@click.option("--from-file", metavar="FILE", help="Offsets that `export` wrote; - for stdin.")
@_manner_options
def reset(
    group: str,
    topics: tuple[str, ...],
    all_topics: bool,
    to: str | None,
    shift: int | None,
    from_file: str | None,
    dry_run: bool,
    yes: bool,
    create: bool,
    as_json: bool,
) -> int:
    """Set where a group goes on. It must have no members at that time.

    \b
    ottla groups reset billing --topic orders --to earliest --dry-run
    ottla groups reset billing --topic orders:0,1 --to 2026-01-31T12:00
    ottla groups reset billing --all-topics --shift -100
    """
    if sum(each is not None for each in (to, shift, from_file)) != 1:
        raise click.UsageError("Say where to: one of --to, --shift and --from-file.")
    if from_file is None and bool(topics) is all_topics:
        raise click.UsageError("Say which topics: either --topic or --all-topics.")
    if from_file is not None and all_topics:
        raise click.UsageError("A file has its own topics; --topic chooses some of them.")
    place = None
    if to is not None:
        now_ms = time.time_ns() // 1_000_000
        place = parse_starting_point(to.removeprefix("offset "), now_ms=now_ms, option="--to")
    offsets = None if from_file is None else _read(from_file, group)
    selections = tuple(parse_selection(text) for text in topics)
    wish = Wish(place, shift, offsets, selections)
    return _fulfil(group, wish, Manner(dry_run, yes, create, as_json))


@click.command("import", short_help="Set where a group goes on, from a file.")
@click.argument("group")
@click.argument("file")
@_manner_options
def import_command(
    group: str, file: str, dry_run: bool, yes: bool, create: bool, as_json: bool
) -> int:
    """Set where a group goes on from a file that `export` wrote; - reads standard input.

    \b
    ottla groups export billing > billing.csv
    ottla groups import billing billing.csv --dry-run
    ottla groups import billing-copy billing.csv --create
    """
    wish = Wish(offsets=_read(file, group))
    return _fulfil(group, wish, Manner(dry_run, yes, create, as_json))


@click.command()
@click.argument("group")
@click.option(
    "--format",
    "-f",
    "format_name",
    type=click.Choice([each.value for each in OffsetFormat]),
    default=OffsetFormat.CSV.value,
    show_default=True,
    help="csv is what Kafka's own tool reads; json has metadata and epochs too.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@broker_options
def export(group: str, format_name: str, as_json: bool) -> None:
    """Write a group's committed offsets to standard output."""

    async def work(client: Client) -> dict[TopicPartition, CommittedOffset]:
        found = await committed_offsets(client, group)
        if not found:
            await describe_group(client, group)  # says so if there is no such group
        return found

    offsets = with_client(work)
    format_ = OffsetFormat.JSON if as_json else OffsetFormat(format_name)
    click.echo(write_offsets(group, offsets, format_), nl=False)
    if not offsets:
        note(f"Group {group} has committed nothing.")


def _read(name: str, group: str) -> dict[TopicPartition, CommittedOffset]:
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return read_offsets(content, group, name)


def _fulfil(group: str, wish: Wish, manner: Manner) -> int:
    """Plans, shows the plan, asks, does it."""
    try:
        members, plan = with_client(lambda client: _prepare(client, group, wish, manner))
    except GroupNotFound as error:
        say_error(f"{error}.", "see `ottla groups list`, or add --create to make it")
        return ExitCode.FAILED
    if not manner.as_json:
        _print_plan(plan)
    if members or not plan or manner.dry_run:
        if manner.as_json:
            print_json(_plan_json(group, plan, applied=False))
        return _leave_alone(group, members, plan)
    confirm(f"Set {counted(len(plan), 'offset')} of group {group}?", manner.yes)
    offsets = {row.partition: row.after for row in plan}
    with_client(lambda client: commit_offsets(client, group, offsets))
    if manner.as_json:
        print_json(_plan_json(group, plan, applied=True))
    else:
        say(f"Set {counted(len(plan), 'offset')} of group {group}.")
    return ExitCode.OK


def _leave_alone(group: str, members: int, plan: list[PlannedOffset]) -> int:
    if not plan:
        say_error(
            f"group {group!r} has committed nothing there.",
            "name the --topic and use --to, which needs no earlier offset",
        )
        return ExitCode.FAILED
    if members:
        error = GroupHasMembers(group, members)
        say_error(f"{error}, so that its offsets cannot be set.", fix_for(error))
        return ExitCode.FAILED
    note("Nothing was set. Leave out --dry-run to do it.")
    return ExitCode.OK


async def _prepare(
    client: Client, group: str, wish: Wish, manner: Manner
) -> tuple[int, list[PlannedOffset]]:
    """How many members there are, and the plan."""
    members = 0
    try:
        members = len((await describe_group(client, group)).members)
    except GroupNotFound:
        if not manner.create:
            raise
    committed = await committed_offsets(client, group)
    return members, await _plan(client, wish, committed)


async def _plan(client: Client, wish: Wish, committed: Committed) -> list[PlannedOffset]:
    if wish.offsets is not None:
        wanted = {
            partition: at
            for partition, at in wish.offsets.items()
            if matches(wish.selections, partition)
        }
        return plan_exactly(wanted, committed, await _ranges(client, wanted))
    partitions = sorted(committed)
    if wish.selections:
        partitions = await select_partitions(client, wish.selections)
    if wish.shift is not None:
        moved = [partition for partition in partitions if partition in committed]
        return plan_shift(wish.shift, committed, await _ranges(client, moved))
    assert wish.place is not None
    ranges = await _ranges(client, partitions)
    places = await _places(client, wish.place, ranges)
    return plan_exactly(places, committed, ranges)


async def _ranges(client: Client, partitions: Iterable[TopicPartition]) -> Ranges:
    """The range of each partition; an error where one is not there or has no leader."""
    for partition in partitions:
        await client.retrying(partial(client.leader, partition), topics=[partition.topic])
    return await ranges_of(client, partitions)


async def _places(client: Client, place: StartingPoint, ranges: Ranges) -> Committed:
    """Where the place is in each partition."""
    if place.kind is StartKind.OFFSET:
        return {partition: CommittedOffset(Offset(place.number)) for partition in ranges}
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic, rows in by_topic(ranges).items():
        of_topic = {row.partition: ranges[row] for row in rows}
        offsets = await offsets_at(client, topic, place, of_topic)
        for partition, offset in offsets.items():
            found[TopicPartition(topic, partition)] = CommittedOffset(offset)
    return found


def _print_plan(plan: list[PlannedOffset]) -> None:
    columns = ["topic", "partition", "committed", "new", "change", "lag then"]
    has_notes = any(row.note for row in plan)
    rows: list[tuple[object, ...]] = []
    for row in plan:
        change = None if row.change is None else f"{row.change:+d}" if row.change else "0"
        cells = (row.partition.topic, row.partition.partition, row.before, row.after.offset)
        rows.append((*cells, change, row.lag, *([row.note] if has_notes else [])))
    print_table([*columns, "note"] if has_notes else columns, rows)


def _plan_json(group: str, plan: list[PlannedOffset], *, applied: bool) -> dict[str, object]:
    offsets = [
        {
            "topic": row.partition.topic,
            "partition": row.partition.partition,
            "before": row.before,
            "offset": row.after.offset,
            "lag": row.lag,
            "note": row.note or None,
        }
        for row in plan
    ]
    return {"group": group, "applied": applied, "offsets": offsets}
