"""`ottla produce`: write records from standard input or a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from ottla.cli.connection_options import broker_options
from ottla.cli.line_source import read_lines
from ottla.cli.message import note, say
from ottla.cli.name_value import parse_pair
from ottla.cli.output import counted
from ottla.cli.record_input import InputRules, TextFormat, parse_line
from ottla.cli.session import with_client
from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound
from ottla.clients.sender import ACKS_ALL, NewRecord, Sender, SendOptions, Sent
from ottla.clients.topics import NewTopic, create_topics
from ottla.errors import ErrorCode, InvalidRecord
from ottla.records.compression import Compression

ACKS: Final = {"0": 0, "1": 1, "all": ACKS_ALL, "-1": ACKS_ALL}
CODECS: Final = {codec.config_name: codec for codec in Compression}


@dataclass(frozen=True, slots=True)
class Job:
    """What one run of the command does."""

    topic: str
    path: Path | None
    rules: InputRules
    options: SendOptions
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
@click.option(
    "--compression", "-z", type=click.Choice(list(CODECS)), default="none", show_default=True
)
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option("--create", is_flag=True, help="Create the topic if it does not exist.")
@click.option("--offsets", is_flag=True, help="Print where each batch went.")
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
    r"""Write records to TOPIC, one a line, from FILE or standard input.

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
        options=SendOptions(acks=ACKS[acks], compression=CODECS[compression]),
        may_create=create,
        is_quiet=quiet,
        prints_offsets=offsets,
    )
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
    sender = await Sender.open(client, job.topic, job.options)
    started = time.monotonic()
    record_count = 0
    partitions: set[int] = set()
    with _input(job) as descriptor, _progress(job) as advance:
        async for batch in _send_all(sender, read_lines(descriptor), job.rules, advance):
            record_count += batch.record_count
            partitions.add(batch.partition)
            if job.prints_offsets:
                say(f"{batch.partition}:{batch.base_offset}\t{batch.record_count}")
    if not job.is_quiet:
        where = counted(len(partitions), "partition")
        elapsed_s = time.monotonic() - started
        note(f"{counted(record_count, 'record')} to {where} of {job.topic} in {elapsed_s:.1f} s")


async def _send_all(
    sender: Sender,
    groups: AsyncIterator[list[bytes]],
    rules: InputRules,
    advance: Callable[[int], None],
) -> AsyncIterator[Sent]:
    """Sends all lines; while one group is on its way, the next is read and parsed."""
    parsed: asyncio.Queue[list[NewRecord] | Exception | None] = asyncio.Queue(maxsize=1)

    async def parse_ahead() -> None:
        line_count = 0
        try:
            async for lines in groups:
                records: list[NewRecord] = []
                try:
                    for record in _records(lines, line_count, rules):
                        records.append(record)  # noqa: PERF402  (those before a bad line count)
                finally:
                    await parsed.put(records)
                line_count += len(lines)
                advance(sum(map(len, lines)) + len(lines))
        except Exception as error:  # comes out below, after what was read before it is sent
            await parsed.put(error)
        else:
            await parsed.put(None)

    parsing = asyncio.create_task(parse_ahead())
    try:
        while (records := await parsed.get()) is not None:
            if isinstance(records, Exception):
                raise records
            for sent in await sender.send(records):
                yield sent
    finally:
        parsing.cancel()


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
