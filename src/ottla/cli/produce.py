"""`ottla produce`: write records from standard input or a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from ottla.aio import Producer
from ottla.cli.connection_options import bootstrap, broker_options, timeout_s
from ottla.cli.deliveries import Deliveries
from ottla.cli.line_source import LINE_BYTES_MAX, read_lines
from ottla.cli.message import note, say
from ottla.cli.name_value import parse_pair
from ottla.cli.output import counted
from ottla.cli.record_input import InputRules, NewRecord, TextFormat, parse_line
from ottla.cli.session import producer_at, with_client
from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound
from ottla.clients.topics import NewTopic, create_topics
from ottla.errors import ErrorCode, InvalidRecord
from ottla.records.compression import Compression

ACKS: Final = ("0", "1", "all", "-1")
CODECS: Final = tuple(codec.config_name for codec in Compression)
BUFFER_BYTES: Final = 16 * 1024 * 1024
REQUEST_BYTES_MAX: Final = LINE_BYTES_MAX + 1024 * 1024
"""Any line may be tried: how large a record may be is for the topic to say."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one run of the command does."""

    topic: str
    path: Path | None
    rules: InputRules
    acks: str
    compression: str
    may_create: bool
    is_quiet: bool
    prints_offsets: bool


@click.command()
@click.argument("topic")
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--format",
    "-f",
    "format_name",
    type=click.Choice([each.value for each in TextFormat]),
    default="text",
    show_default=True,
    help="How lines are written.",
)
@click.option("--key-separator", "-k", metavar="TEXT", help="What divides key and value.")
@click.option("--null-marker", metavar="TEXT", help="A key or value written so is null.")
@click.option("--header", "-H", "headers", multiple=True, metavar="K=V", help="For every record.")
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Write only to this one.")
@click.option("--compression", "-z", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--acks", type=click.Choice(ACKS), default="all", show_default=True)
@click.option("--create", is_flag=True, help="Create the topic if it does not exist.")
@click.option("--offsets", is_flag=True, help="Print where records went.")
@click.option("--quiet", "-q", is_flag=True, help="No summary.")
@broker_options
def produce(
    topic: str,
    file: Path | None,
    format_name: str,
    key_separator: str | None,
    null_marker: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    compression: str,
    acks: str,
    create: bool,
    offsets: bool,
    quiet: bool,
) -> None:
    """Write records to TOPIC, one a line, from FILE or standard input.

    \b
    echo hello | ottla produce greetings
    ottla produce users users.txt --key-separator :
    echo '{"key": "k", "value": {"a": 1}, "headers": {"h": "x"}}' | ottla produce t -f json
    ottla consume old -f json | ottla produce new -f json

    With --format json, a line is an object with "value" and perhaps "key", "headers",
    "partition" and "timestamp"; "value_base64" and "key_base64" hold bytes that are not text.
    """
    job = Job(
        topic=topic,
        path=file,
        rules=InputRules(
            format=TextFormat(format_name),
            key_separator=_unescaped(key_separator),
            null_marker=_unescaped(null_marker),
            headers=tuple((name, value.encode()) for name, value in map(parse_pair, headers)),
            partition=partition,
        ),
        acks=acks,
        compression=compression,
        may_create=create,
        is_quiet=quiet,
        prints_offsets=offsets,
    )
    if job.rules.format is TextFormat.JSON and (key_separator or null_marker):
        raise click.UsageError(
            "In JSON, keys and nulls are named: leave out the separator and marker."
        )
    if key_separator == "":
        raise click.UsageError("--key-separator is empty; write what divides key and value.")
    if file is None and sys.stdin.isatty() and not quiet:
        note(f"One record a line to {topic}; Ctrl-D ends.")
    with_client(lambda client: _produce(client, job))


def _unescaped(text: str | None) -> bytes | None:
    r"""Separators are often tabs: the two characters \t mean one."""
    if text is None:
        return None
    return text.replace("\\t", "\t").replace("\\n", "\n").encode()


async def _produce(client: Client, job: Job) -> None:
    if job.may_create:
        await _create_if_missing(client, job.topic)
    await client.retrying(lambda: client.topic(job.topic))
    started = time.monotonic()
    async with _producer(job) as producer:
        deliveries = await _send_all(producer, job)
    if not job.is_quiet:
        where = counted(len(deliveries.partitions), "partition")
        elapsed_s = time.monotonic() - started
        count = counted(deliveries.record_count, "record")
        note(f"{count} to {where} of {job.topic} in {elapsed_s:.1f} s")


def _producer(job: Job) -> Producer:
    return producer_at(
        bootstrap(),
        timeout_s(),
        acks=job.acks,
        compression_type=job.compression,
        buffer_memory=BUFFER_BYTES,
        max_request_size=REQUEST_BYTES_MAX,
    )


async def _send_all(producer: Producer, job: Job) -> Deliveries:
    """Sends all lines; raises the first trouble, whether it is a line's or the broker's."""
    deliveries = Deliveries()
    feeding = asyncio.create_task(_feed(producer, job, deliveries))
    feeding.add_done_callback(lambda _: deliveries.news.set())
    try:
        while not feeding.done():
            await deliveries.news.wait()
            for run in deliveries.take_runs():
                if job.prints_offsets:
                    say(f"{run.partition}:{run.base_offset}\t{run.record_count}")
            if deliveries.error is not None:
                raise deliveries.error
        await feeding
    finally:
        feeding.cancel()
    return deliveries


async def _feed(producer: Producer, job: Job, deliveries: Deliveries) -> None:
    """Reads and sends; returns when all has its answer. What stands before a bad line is sent."""
    line_count = 0
    with _input(job) as descriptor, _progress(job) as advance:
        try:
            async for lines in read_lines(descriptor):
                for record in _records(lines, line_count, job.rules):
                    await producer.send(
                        job.topic,
                        record.value,
                        record.key,
                        partition=record.partition,
                        headers=record.headers,
                        timestamp_ms=record.timestamp_ms,
                        on_delivery=deliveries.hear,
                    )
                    line_count += 1
                advance(sum(map(len, lines)) + len(lines))
        except (InvalidRecord, TopicNotFound, OSError) as error:
            await producer.flush()
            if isinstance(error, TopicNotFound) and _is_of_a_line(error, job):
                seen = f"`ottla topics describe {job.topic}` shows those there are"
                raise InvalidRecord(f"line {line_count + 1}: {error}; {seen}") from None
            raise
        await producer.flush()


def _is_of_a_line(error: TopicNotFound, job: Job) -> bool:
    return error.partition is not None and job.rules.partition is None


def _records(lines: list[bytes], lines_before: int, rules: InputRules) -> Iterator[NewRecord]:
    for number, line in enumerate(lines, start=lines_before + 1):
        try:
            yield parse_line(line, rules)
        except InvalidRecord as error:
            raise InvalidRecord(f"line {number}: {error}") from None


async def _create_if_missing(client: Client, topic: str) -> None:
    try:
        await client.retrying(lambda: client.topic(topic))
    except TopicNotFound:
        for created in await create_topics(client, [NewTopic(topic)]):
            # Somebody else may have created it in between, and that is as good.
            if created.error and created.error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise created.error from None
        await client.wait_for_topic(topic)


@contextmanager
def _input(job: Job) -> Iterator[int]:
    if job.path is None:
        yield sys.stdin.fileno()
        return
    descriptor = os.open(job.path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _progress(job: Job) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while a file is read, if somebody looks."""
    if job.path is None or job.is_quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(job.path.name, total=job.path.stat().st_size)
        yield lambda count: bar.advance(task, count)
