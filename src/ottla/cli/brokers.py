"""`ottla brokers`: list them, and take everything off one that is to leave."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import click

from ottla.cli.cluster_plan import Assignment, assignment_of, next_moves, without_broker
from ottla.cli.cluster_status import look_at_health
from ottla.cli.complaint import fix_for
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import note, say, say_error
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.reassignment_file import as_json_text
from ottla.cli.session import with_client
from ottla.clients.client import Client
from ottla.clients.cluster import describe_cluster
from ottla.clients.placement import Refusals, look_at_placement, reassign_partitions
from ottla.model.ids import BrokerId, TopicPartition

AT_ONCE: Final = 20
SECONDS_BETWEEN_LOOKS: Final = 0.5
LOOKS_WITHOUT_PROGRESS: Final = 120
"""After so many a word is said about it; the move itself is the brokers' and goes on."""


@click.group()
def brokers() -> None:
    """List the brokers of a cluster, and empty one that is to leave."""


@brokers.command("list")
@json_option
@broker_options
def list_command(as_json: bool) -> None:
    """List the brokers and how much each leads and holds."""
    health = with_client(look_at_health)
    if as_json:
        print_json(
            [
                {
                    "id": each.broker.id,
                    "address": str(each.broker.address),
                    "rack": each.broker.rack,
                    "controller": each.is_controller,
                    "leads": each.leads,
                    "replicas": each.replicas,
                }
                for each in health.loads
            ]
        )
        return
    print_table(
        ["broker", "address", "rack", "controller", "leads", "replicas"],
        [
            (
                each.broker.id,
                each.broker.address,
                each.broker.rack,
                each.is_controller,
                each.leads,
                each.replicas,
            )
            for each in health.loads
        ],
    )


@dataclass(frozen=True, slots=True)
class Drain:
    """How far it is."""

    left: int
    """Partitions the broker still holds."""
    plan: Assignment
    """Moves that have not begun."""
    under_way: int


@brokers.command()
@click.argument("broker", type=click.IntRange(min=0), metavar="ID")
@click.option(
    "--dry-run", is_flag=True, help="Only print the moves, as `ottla reassign` takes them."
)
@click.option("--wait/--no-wait", default=True, help="Stay until all is moved.  [default: wait]")
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=AT_ONCE,
    show_default=True,
    help="So many partitions move at a time.",
)
@broker_options
def drain(broker: int, dry_run: bool, wait: bool, at_once: int) -> int:
    """Move all partitions off a broker, so that it can be taken away.

    May be stopped and run again: it goes on where it was. With --no-wait all moves begin at once.

    \b
    ottla brokers drain 3 --dry-run
    ottla brokers drain 3
    """
    leaving = BrokerId(broker)
    if dry_run:
        return _print_plan(leaving, with_client(lambda client: look_at_drain(client, leaving)))
    if not wait:
        return with_client(lambda client: _begin(client, leaving))
    return with_client(lambda client: _drain(client, leaving, at_once))


async def look_at_drain(client: Client, broker: BrokerId) -> Drain:
    """What is still to do; the brokers are asked each time, so that nothing need be remembered."""
    cluster = await describe_cluster(client)
    placement = await look_at_placement(client)
    topics, moves = placement.topics, placement.moves
    held = {
        TopicPartition(topic.name, row.partition)
        for topic in topics
        for row in topic.partitions
        if broker in row.replicas
    }
    if not held and broker not in {each.id for each in cluster.brokers}:
        known = ", ".join(str(each.id) for each in cluster.brokers)
        raise click.UsageError(f"There is no broker {broker}; there are {known}.")
    plan = without_broker(assignment_of(topics, moves), broker, cluster.brokers)
    return Drain(len(held), plan, len([each for each in moves if broker in each.removing]))


def _print_plan(broker: BrokerId, found: Drain) -> int:
    note(
        f"{counted(len(found.plan), 'partition')} would move off broker {broker}"
        f" ({found.under_way} are moving already)."
    )
    say(as_json_text(found.plan))
    return ExitCode.OK


async def _begin(client: Client, broker: BrokerId) -> int:
    found = await look_at_drain(client, broker)
    if refusals := await _move(client, found.plan):
        return complain_of(refusals)
    say(
        f"Began to move {counted(len(found.plan), 'partition')} off broker {broker};"
        f" `ottla reassign status` shows how far it is."
    )
    return ExitCode.OK


async def _drain(client: Client, broker: BrokerId, at_once: int) -> int:
    found = await look_at_drain(client, broker)
    most, idle = found.left, 0
    with _progress(f"broker {broker}") as show:
        while found.left:
            show(max(0, most - found.left), most)
            if refusals := await _move(client, next_moves(found.plan, found.under_way, at_once)):
                return complain_of(refusals)
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            before, found = found, await look_at_drain(client, broker)
            most = max(most, found.left)
            idle = idle + 1 if found.left >= before.left else 0
            if idle == LOOKS_WITHOUT_PROGRESS:
                note("nothing has arrived for a while; `ottla cluster status` says how they are")
        if most:
            show(most, most)
    say(
        f"Broker {broker} holds nothing any more. Stop it before new topics are created:"
        " they may be placed on it."
    )
    return ExitCode.OK


async def _move(client: Client, plan: Assignment) -> Refusals:
    return await reassign_partitions(client, plan) if plan else {}


def complain_of(refusals: Refusals) -> int:
    """Says why partitions were not moved."""
    for partition, error in sorted(refusals.items()):
        say_error(f"{partition} was not moved: {error}", fix_for(error))
    return ExitCode.FAILED


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar in a terminal, elsewhere a line for each change."""
    if not sys.stderr.isatty():
        last: list[tuple[int, int]] = []

        def tell(done: int, total: int) -> None:
            if last != [(done, total)]:
                last[:] = [(done, total)]
                note(f"{what}: {done} of {counted(total, 'partition')} moved")

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what)
        yield lambda done, total: progress.update(task, completed=done, total=total)
