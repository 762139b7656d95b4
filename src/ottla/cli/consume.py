"""`ottla consume`: read records of a topic."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Final

import click

from ottla.cli.connection_options import broker_options
from ottla.cli.message import note
from ottla.cli.reading import offsets_at
from ottla.cli.record_input import TextFormat
from ottla.cli.record_output import OutputRules, render
from ottla.cli.session import with_client
from ottla.cli.starting_point import StartingPoint, StartKind, parse_starting_point
from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound
from ottla.clients.offsets import offset_ranges
from ottla.clients.reader import Fetched, Reader, ReadOptions
from ottla.clients.retry import RetryPolicy
from ottla.model.ids import Offset
from ottla.records.record import Record

FOLLOW_RETRIES: Final = RetryPolicy(attempts_max=600, longest_wait_s=2.0, total_s=1200.0)
"""Somebody who follows a topic wants to see it go on after a broker's restart."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one run of the command does."""

    topic: str
    start: StartingPoint
    partitions: tuple[int, ...]
    follows: bool
    records_max: int | None
    committed_only: bool
    rules: OutputRules


@click.command()
@click.argument("topic")
@click.option(
    "--from",
    "-o",
    "start",
    metavar="WHERE",
    default="beginning",
    show_default=True,
    help="beginning, end, an offset (42), the last of each partition (-10), "
    "an age (-1h), a time (2026-01-31T12:00), or milliseconds (@1767225600000).",
)
@click.option("--follow", "-F", is_flag=True, help="Wait for new records until Ctrl-C.")
@click.option("--max", "-n", "records_max", type=click.IntRange(min=1), help="Stop after so many.")
@click.option(
    "--partition", "-p", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this."
)
@click.option(
    "--format",
    "-f",
    "format_name",
    type=click.Choice([each.value for each in TextFormat]),
    default="text",
    show_default=True,
    help="How records are written; json has everything, one object a line.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--keys", "-K", is_flag=True, help="Show keys.")
@click.option("--headers", "-H", is_flag=True, help="Show headers.")
@click.option("--timestamps", "-T", is_flag=True, help="Show timestamps.")
@click.option("--offsets", "-O", is_flag=True, help="Show partition:offset.")
@click.option("--separator", "-s", metavar="TEXT", default="\\t", help="Between columns; a tab.")
@click.option("--null-marker", metavar="TEXT", default="", help="What stands for null; nothing.")
@click.option("--committed", is_flag=True, help="Leave out aborted and open transactions.")
@broker_options
def consume(
    topic: str,
    start: str,
    follow: bool,
    records_max: int | None,
    partitions: tuple[int, ...],
    format_name: str,
    as_json: bool,
    keys: bool,
    headers: bool,
    timestamps: bool,
    offsets: bool,
    separator: str,
    null_marker: str,
    committed: bool,
) -> None:
    r"""Read records of TOPIC: those there are now, or with --follow also those to come.

    \b
    ottla consume orders
    ottla consume orders --from -1h --keys --timestamps
    ottla consume orders --from end --follow --format json
    ottla consume orders --partition 0 --from 42 --max 1
    """
    place = parse_starting_point(start, now_ms=time.time_ns() // 1_000_000)
    job = Job(
        topic=topic,
        start=place,
        partitions=partitions,
        follows=follow or place.kind is StartKind.END,
        records_max=records_max,
        committed_only=committed,
        rules=OutputRules(
            format=TextFormat.JSON if as_json else TextFormat(format_name),
            separator=separator.replace("\\t", "\t").encode(),
            null_marker=null_marker.encode(),
            with_offsets=offsets,
            with_timestamps=timestamps,
            with_headers=headers,
            with_keys=keys,
        ),
    )
    if job.follows and sys.stderr.isatty():
        note(f"Following {topic}; Ctrl-C ends.")
    retries = FOLLOW_RETRIES if job.follows else None
    with_client(lambda client: _consume(client, job), retries=retries)


async def _consume(client: Client, job: Job) -> None:
    topic = await client.retrying(lambda: client.topic(job.topic))
    existing = {row.partition for row in topic.partitions}
    for partition in job.partitions:
        if partition not in existing:
            raise TopicNotFound(job.topic, partition)
    ranges = await offset_ranges(
        client, job.topic, job.partitions or sorted(existing), committed_only=job.committed_only
    )
    positions = await offsets_at(client, job.topic, job.start, ranges)
    ends = {} if job.follows else {partition: end for partition, (_, end) in ranges.items()}
    reader = Reader(client, job.topic, positions, ReadOptions(committed_only=job.committed_only))
    try:
        await _print_all(reader, ends, job)
    finally:
        await reader.close()


async def _print_all(reader: Reader, ends: dict[int, Offset], job: Job) -> None:
    """Prints until every partition has reached its end, if it has one, or enough is printed."""
    remaining = sys.maxsize if job.records_max is None else job.records_max
    for partition, position in dict(reader.positions).items():
        if position >= ends.get(partition, sys.maxsize):
            reader.stop(partition)
    output = sys.stdout.buffer
    while reader.positions and remaining > 0:
        for fetched in await reader.poll():
            end = ends.get(fetched.partition, sys.maxsize)
            if fetched.next_offset >= end:
                reader.stop(fetched.partition)
            records = _within(fetched, end)[:remaining]
            remaining -= len(records)
            output.write(render(job.topic, fetched.partition, records, job.rules))
        output.flush()


def _within(fetched: Fetched, end: int) -> list[Record]:
    """The records before `end`: some may have been written since it was asked for."""
    if fetched.next_offset <= end:
        return fetched.records
    return [record for record in fetched.records if record.offset < end]
