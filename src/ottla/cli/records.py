"""`ottla records`: delete the oldest records of a topic."""

from __future__ import annotations

import time

import click

from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.reading import offsets_at
from ottla.cli.session import with_client
from ottla.cli.starting_point import parse_starting_point
from ottla.cli.topics import confirm
from ottla.clients.client import Client
from ottla.clients.offsets import delete_records, offset_ranges
from ottla.model.ids import Offset


@click.group()
def records() -> None:
    """Delete the oldest records of a topic."""


@records.command()
@click.argument("topic")
@click.option(
    "--before",
    required=True,
    metavar="WHERE",
    help="Keep what comes from here on: an offset, end, an age (-7d), a time, @milliseconds.",
)
@click.option("--partition", "-p", "partitions", type=int, multiple=True, help="Only this one.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@broker_options
def delete(topic: str, before: str, partitions: tuple[int, ...], yes: bool, as_json: bool) -> None:
    """Delete the records before a place; they cannot be read any more.

    \b
    ottla records delete orders --before -30d
    ottla records delete orders --before 1000 --partition 0
    """
    place = parse_starting_point(before, now_ms=time.time_ns() // 1_000_000, option="--before")
    confirm(f"Delete the records of {topic} before {before}?", yes)

    async def work(client: Client) -> dict[int, tuple[Offset, Offset]]:
        found = await client.retrying(lambda: client.topic(topic))
        wanted = partitions or tuple(row.partition for row in found.partitions)
        ranges = await offset_ranges(client, topic, wanted)
        positions = await offsets_at(client, topic, place, ranges)
        first = await delete_records(client, topic, positions)
        return {partition: (ranges[partition][0], first[partition]) for partition in wanted}

    moved = with_client(work)
    if as_json:
        print_json(
            [
                {"partition": partition, "start_offset": first, "deleted": first - before_}
                for partition, (before_, first) in moved.items()
            ]
        )
        return
    print_table(
        ["partition", "start", "deleted"],
        [
            (partition, first, counted(max(0, first - before_), "record"))
            for partition, (before_, first) in moved.items()
        ],
    )
