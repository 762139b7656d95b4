"""`ottla consume`: read records of a topic."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Final

import click

from ottla.aio import Consumer
from ottla.cli.connection_options import bootstrap, broker_options, timeout_s
from ottla.cli.message import note
from ottla.cli.reading import offsets_at
from ottla.cli.record_input import TextFormat
from ottla.cli.record_output import OutputRules, render
from ottla.cli.session import consumer_at, with_client
from ottla.cli.starting_point import StartingPoint, StartKind, parse_starting_point
from ottla.clients.client import Client
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.failures import TopicNotFound, is_worth_retrying
from ottla.clients.offsets import offset_ranges
from ottla.errors import OttlaError, TimedOut
from ottla.model.ids import Offset, TopicPartition

POLL_RECORDS_MAX: Final = 10_000
FETCH_BYTES_MAX: Final = 16 * 1024 * 1024
FOLLOW_WAIT_S: Final = 5.0
END_WAIT_S: Final = 0.1
"""Where the last offsets hold no records, only a look at the position shows that all is read."""


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
    """Read records of TOPIC: those there are now, or with --follow also those to come.

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
    with_client(lambda client: _consume(client, job))


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
    places = {TopicPartition(job.topic, each): offset for each, offset in positions.items()}
    level = "read_committed" if job.committed_only else "read_uncommitted"
    async with consumer_at(
        bootstrap(), timeout_s(), isolation_level=level, fetch_max_bytes=FETCH_BYTES_MAX
    ) as consumer:
        if job.follows:
            await _follow(consumer, places, job)
        else:
            ends = {TopicPartition(job.topic, each): end for each, (_, end) in ranges.items()}
            if job.start.kind is StartKind.OFFSET and job.start.number > max(ends.values()):
                note(f"{job.topic} ends at {max(ends.values())}, before {job.start.number}.")
            await read_to(consumer, places, ends, job)


async def _follow(consumer: Consumer, places: dict[TopicPartition, Offset], job: Job) -> None:
    """Prints what comes until enough is printed; goes on after a broker's restart."""
    _begin(consumer, places)
    remaining = sys.maxsize if job.records_max is None else job.records_max
    while remaining > 0:
        records = await consumer.poll(FOLLOW_WAIT_S, max_records=min(remaining, POLL_RECORDS_MAX))
        remaining -= len(records)
        _print(records, job.rules)
        if not records:
            await _check_topic(consumer, job.topic)


async def read_to(
    consumer: Consumer,
    places: dict[TopicPartition, Offset],
    ends: dict[TopicPartition, Offset],
    job: Job,
) -> None:
    """Prints until every partition has reached its end, or enough is printed."""
    remaining = sys.maxsize if job.records_max is None else job.records_max
    unread = {where: offset for where, offset in places.items() if offset < ends[where]}
    _begin(consumer, unread)
    moved_at = time.monotonic()
    while unread and remaining > 0:
        polled = await consumer.poll(END_WAIT_S, max_records=POLL_RECORDS_MAX)
        # Some may have been written since the end was asked for.
        records = [each for each in polled if each.offset < ends[_place(each)]][:remaining]
        remaining -= len(records)
        _print(records, job.rules)
        reached = {where: Offset(await consumer.position(where)) for where in unread}
        if reached != unread:
            moved_at = time.monotonic()
        elif time.monotonic() - moved_at > timeout_s():
            await consumer.partitions_for(job.topic)  # which knows better what is wrong
            raise TimedOut(f"no more records of {job.topic!r} came for {timeout_s():g} s")
        unread = {where: at for where, at in reached.items() if at < ends[where]}
        if len(unread) < len(reached):
            consumer.assign(unread)


def _begin(consumer: Consumer, places: dict[TopicPartition, Offset]) -> None:
    consumer.assign(places)
    for where, offset in places.items():
        consumer.seek(where, offset)


def _place(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _print(records: list[ConsumerRecord], rules: OutputRules) -> None:
    sys.stdout.buffer.write(render(records, rules))
    sys.stdout.buffer.flush()


async def _check_topic(consumer: Consumer, topic: str) -> None:
    """Raises why nothing will come any more; a broker may be away for however long."""
    try:
        await consumer.partitions_for(topic)
    except OttlaError as error:
        if not is_worth_retrying(error):
            raise
