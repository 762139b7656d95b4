"""`ottla transactions`: list, describe, see who writes to a partition, find and end what hangs."""

from __future__ import annotations

import shlex
import sys
import time
from typing import Final

import click

from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.duration import duration_option, duration_text
from ottla.cli.exit_code import ExitCode
from ottla.cli.groups import partitions_text
from ottla.cli.message import note, paint, say, say_error
from ottla.cli.output import counted, print_json, print_table, time_text
from ottla.cli.session import with_client
from ottla.cli.topic_selection import parse_selection, select_partitions
from ottla.cli.topics import confirm
from ottla.clients.client import Client
from ottla.clients.hanging_transactions import (
    HangingTransaction,
    find_hanging,
    open_transaction_at,
    reason_it_hangs,
    transactions_of,
)
from ottla.clients.topics import list_topics
from ottla.clients.transactions import (
    STATES,
    PartitionProducer,
    TransactionDescription,
    TransactionFilter,
    abort_in_partition,
    describe_producers,
    describe_transaction,
    list_transactions,
    take_over,
)
from ottla.model.ids import Offset, ProducerId, TopicPartition

OLDER_THAN: Final = "15m"
"""The longest time-out brokers allow unless they are told otherwise."""
_OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@click.group()
def transactions() -> None:
    """See who writes in transactions, and end one that hangs."""


@transactions.command("list")
@click.option(
    "--state",
    "-s",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only those in this state. May be repeated.",
)
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Only this producer.")
@click.option(
    "--longer-than",
    metavar="DURATION",
    callback=duration_option,
    help="Only transactions that are open for longer: 90s, 15m, 1h.",
)
@click.option("--matching", metavar="REGEX", help="Only ids that match as a whole.")
@json_option
@broker_options
def list_command(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: int | None,
    matching: str | None,
    as_json: bool,
) -> None:
    """List the transactional ids."""
    ids = tuple(ProducerId(each) for each in producer_ids)
    wanted = TransactionFilter(states, ids, longer_than, matching)
    found = with_client(lambda client: list_transactions(client, wanted))
    if as_json:
        print_json(
            [
                {
                    "transactional_id": each.id,
                    "state": each.state,
                    "producer_id": each.producer_id,
                    "coordinator": each.coordinator,
                }
                for each in found
            ]
        )
        return
    if not found and sys.stdout.isatty():
        say("There are no such transactions.")
        return
    print_table(
        ["transactional id", "state", "producer", "coordinator"],
        [(each.id, each.state, each.producer_id, each.coordinator) for each in found],
    )


@transactions.command(short_help="Show state, age and partitions.")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@json_option
@broker_options
def describe(names: tuple[str, ...], as_json: bool) -> None:
    """Show state, producer, age and partitions of transactional ids."""

    async def work(client: Client) -> list[TransactionDescription]:
        return [await describe_transaction(client, name) for name in names]

    described = with_client(work)
    if as_json:
        print_json([_described_json(each) for each in described])
        return
    for index, each in enumerate(described):
        if index:
            say("")
        _print_described(each)


def _print_described(each: TransactionDescription) -> None:
    say(paint(each.id, bold=True))
    say(f"state        {each.state}")
    if each.started_ms is not None:
        age = duration_text(_now_ms() - each.started_ms)
        say(f"started      {time_text(each.started_ms)} ({age} ago)")
    say(f"time-out     {duration_text(each.timeout_ms)}")
    say(f"producer     {each.producer_id}, epoch {each.producer_epoch}")
    say(f"coordinator  broker {each.coordinator}")
    say(f"partitions   {partitions_text(each.partitions) or '-'}")


@transactions.command(short_help="Show who writes to partitions.")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:PARTITIONS]...")
@click.option("--open", "open_only", is_flag=True, help="Only those with an open transaction.")
@json_option
@broker_options
def producers(topics: tuple[str, ...], open_only: bool, as_json: bool) -> None:
    """Show the producers that partitions remember, and where their transactions begin."""
    selections = [parse_selection(text) for text in topics]

    async def work(client: Client) -> list[PartitionProducer]:
        partitions = await select_partitions(client, selections)
        return await describe_producers(client, partitions)

    found = [
        each for each in with_client(work) if not open_only or each.transaction_start is not None
    ]
    if as_json:
        print_json([_producer_json(each) for each in found])
        return
    print_table(
        ["topic", "partition", "producer", "epoch", "sequence", "last write", "open from"],
        [
            (
                each.partition.topic,
                each.partition.partition,
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                time_text(each.last_timestamp_ms),
                each.transaction_start,
            )
            for each in found
        ],
    )


@transactions.command("find-hanging", short_help="Find those that nobody will end.")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="Look only here; else everywhere. May be repeated.",
)
@click.option(
    "--older-than",
    metavar="DURATION",
    default=OLDER_THAN,
    show_default=True,
    callback=duration_option,
    help="Leave out what was written to since; no shorter than your longest transactions.",
)
@json_option
@broker_options
def find_hanging_command(topics: tuple[str, ...], older_than: int, as_json: bool) -> int:
    """Find transactions that are open in a partition though nobody will end them.

    Readers of committed records stop in front of such a transaction. The exit code is 1 if there
    is one.
    """
    selections = [parse_selection(text) for text in topics]

    async def work(client: Client) -> list[HangingTransaction]:
        partitions = await (
            select_partitions(client, selections) if selections else _led_partitions(client)
        )
        return await find_hanging(client, partitions, older_than_ms=older_than, now_ms=_now_ms())

    found = with_client(work)
    if as_json:
        print_json([_hanging_json(each) for each in found])
    elif found:
        _print_hanging(found)
    else:
        say("No transaction hangs.")
    return ExitCode.FAILED if found else ExitCode.OK


async def _led_partitions(client: Client) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, row.partition)
        for topic in await list_topics(client, internal=True)
        for row in topic.partitions
        if row.leader >= 0
    ]


def _print_hanging(found: list[HangingTransaction]) -> None:
    print_table(
        ["topic", "partition", "start offset", "producer", "last write", "id", "why"],
        [
            (
                each.producer.partition.topic,
                each.producer.partition.partition,
                each.producer.transaction_start,
                each.producer.producer_id,
                time_text(each.producer.last_timestamp_ms),
                each.transaction.id if each.transaction else None,
                each.reason,
            )
            for each in found
        ],
    )
    is_one = len(found) == 1
    say_error(
        f"{counted(len(found), 'transaction')} {'hangs' if is_one else 'hang'}.",
        f"end {'it' if is_one else 'each'} with `{_abort_command(found[0].producer)}`"
        + ("" if is_one else " and so on"),
    )


def _abort_command(producer: PartitionProducer) -> str:
    place = producer.partition
    return (
        f"ottla transactions abort --topic {place.topic} --partition {place.partition} "
        f"--start-offset {producer.transaction_start}"
    )


@transactions.command(short_help="End a transaction: what it wrote does not count.")
@click.argument("name", required=False, metavar="[ID]")
@click.option("--topic", "-t", help="Where a transaction hangs.")
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Of the topic.")
@click.option("--start-offset", type=click.IntRange(min=0), help="Where the transaction begins.")
@click.option("--force", is_flag=True, help="Even if its coordinator has it under way.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@broker_options
def abort(
    name: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    force: bool,
    yes: bool,
) -> int:
    """End a transaction: what it wrote does not count.

    By its ID, the coordinator aborts it everywhere, and its producer is fenced. By its place, it
    ends in that partition only: for one that hangs, which no coordinator knows.

    \b
    ottla transactions abort payments-1
    ottla transactions abort --topic orders --partition 0 --start-offset 42
    """
    if name is not None and topic is None and partition is None and start_offset is None:
        return _abort_id(name, yes)
    if name is not None or topic is None or partition is None or start_offset is None:
        raise click.UsageError("Say which: either ID, or --topic, --partition and --start-offset.")
    return _abort_place(TopicPartition(topic, partition), Offset(start_offset), force, yes)


def _abort_id(name: str, yes: bool) -> int:
    described = with_client(lambda client: describe_transaction(client, name))
    if described.state not in _OPEN_STATES:
        say(f"Nothing is open under {name}: its state is {described.state}.")
        return ExitCode.OK
    _print_described(described)
    confirm(f"Abort the transaction of {name} and fence its producer?", yes)
    with_client(lambda client: take_over(client, described))
    say(f"Ended what was open under {name}.")
    return ExitCode.OK


def _abort_place(place: TopicPartition, start: Offset, force: bool, yes: bool) -> int:
    async def find(client: Client) -> tuple[PartitionProducer, TransactionDescription | None]:
        producer = await open_transaction_at(client, place, start)
        known = {} if force else await transactions_of(client, [producer])
        return producer, known.get(producer.producer_id)

    producer, transaction = with_client(find)
    reason = reason_it_hangs(producer, transaction, _now_ms())
    if transaction is not None and reason is None:
        say_error(
            f"the transaction at offset {start} of {place} does not hang: its coordinator has it "
            f"as {transaction.state} of {transaction.id!r}.",
            f"wait for its end, or end all of it with `ottla transactions abort "
            f"{shlex.quote(transaction.id)}`; --force ends it here only",
        )
        return ExitCode.FAILED
    written = f"last write {time_text(producer.last_timestamp_ms)}"
    note(f"Producer {producer.producer_id}, epoch {producer.producer_epoch}, {written}.")
    if reason is not None and not force:
        note(f"It hangs: {reason}.")
    confirm(f"Abort the transaction at offset {start} of {place}?", yes)
    with_client(lambda client: abort_in_partition(client, producer))
    say(f"Aborted the transaction at offset {start} of {place}.")
    return ExitCode.OK


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _described_json(each: TransactionDescription) -> dict[str, object]:
    return {
        "transactional_id": each.id,
        "state": each.state,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "timeout_ms": each.timeout_ms,
        "started_ms": each.started_ms,
        "coordinator": each.coordinator,
        "partitions": [{"topic": row.topic, "partition": row.partition} for row in each.partitions],
    }


def _producer_json(each: PartitionProducer) -> dict[str, object]:
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "last_sequence": each.last_sequence,
        "last_timestamp_ms": each.last_timestamp_ms,
        "coordinator_epoch": each.coordinator_epoch,
        "transaction_start_offset": each.transaction_start,
    }


def _hanging_json(each: HangingTransaction) -> dict[str, object]:
    return {
        **_producer_json(each.producer),
        "transactional_id": each.transaction.id if each.transaction else None,
        "reason": each.reason,
    }
