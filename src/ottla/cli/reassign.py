"""`ottla reassign`: plan which brokers hold which partitions, do it, watch it, take it back."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

import click

from ottla.cli.brokers import complain_of
from ottla.cli.cluster_plan import Assignment, assignment_of, spread_evenly, target_of
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import note, say
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.reassignment_file import as_json_text, parse
from ottla.cli.session import with_client
from ottla.clients.client import Client
from ottla.clients.cluster import describe_cluster
from ottla.clients.failures import TopicNotFound
from ottla.clients.placement import (
    Reassignment,
    list_reassignments,
    look_at_placement,
    reassign_partitions,
)

FILE: Final = click.File("rb")


@click.group()
def reassign() -> None:
    """Move partitions between brokers. The documents are those of Kafka's own tool."""


@reassign.command()
@click.option("--brokers", "chosen", metavar="ID,ID,...", help="Use these only.  [default: all]")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this; repeatable.")
@broker_options
def plan(chosen: str | None, topics: tuple[str, ...]) -> None:
    """Print moves that spread partitions and leaders evenly, moving as little as possible.

    \b
    ottla reassign plan > moves.json
    ottla reassign plan --brokers 1,2,3 --topic orders
    """
    wanted = _ids(chosen)
    changes = with_client(lambda client: _plan(client, wanted, topics))
    note(f"{counted(len(changes), 'partition')} would change; `ottla reassign execute` does it.")
    say(as_json_text(changes))


async def _plan(
    client: Client, wanted: frozenset[int] | None, topics: tuple[str, ...]
) -> Assignment:
    cluster = await describe_cluster(client)
    known = {int(each.id) for each in cluster.brokers}
    if wanted is not None and wanted - known:
        absent = ", ".join(str(each) for each in sorted(wanted - known))
        raise click.UsageError(f"There is no broker {absent}.")
    usable = [each for each in cluster.brokers if wanted is None or each.id in wanted]
    found = await look_at_placement(client)
    if unknown := set(topics) - {topic.name for topic in found.topics}:
        raise TopicNotFound(min(unknown))
    selected = [topic for topic in found.topics if not topics or topic.name in topics]
    return spread_evenly(assignment_of(selected, found.moves), usable)


@reassign.command()
@click.argument("document", type=FILE, metavar="FILE")
@click.option(
    "--save-current",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write where the partitions are now to this file, to go back.",
)
@broker_options
def execute(document: BinaryIO, save_current: Path | None) -> int:
    """Begin the moves of a document (- is standard input).

    \b
    ottla reassign execute moves.json --save-current before.json
    """
    wanted = parse(document.read())
    if not wanted:
        say("The document names no partition: nothing to do.")
        return ExitCode.OK
    if save_current is not None:
        found = with_client(look_at_placement)
        now = assignment_of(found.topics, found.moves)
        known = {each: now[each] for each in wanted if each in now}
        save_current.write_text(as_json_text(known) + "\n")
    if refusals := with_client(lambda client: reassign_partitions(client, wanted)):
        return complain_of(refusals)
    say(f"Began to move {counted(len(wanted), 'partition')}.")
    return ExitCode.OK


@reassign.command()
@click.argument("document", type=FILE, metavar="[FILE]", required=False)
@json_option
@broker_options
def status(document: BinaryIO | None, as_json: bool) -> int:
    """Show the moves under way; with a document, exit code 1 says that it is not done."""
    wanted = parse(document.read()) if document is not None else None
    found = with_client(look_at_placement)
    moves, now = found.moves, assignment_of(found.topics)
    if wanted is not None:
        moves = [move for move in moves if move.partition in wanted]
    if as_json:
        print_json([_move_json(move) for move in moves])
    elif moves:
        rows = [(each.partition, target_of(each), each.adding, each.removing) for each in moves]
        print_table(["partition", "will be on", "adding", "removing"], rows)
    else:
        say("No partition is moving.")
    if wanted is None:
        return ExitCode.OK
    open_ones = [each for each, replicas in wanted.items() if now.get(each) != replicas]
    say(f"{len(wanted) - len(open_ones)} of {counted(len(wanted), 'partition')} are in place.")
    return ExitCode.FAILED if open_ones else ExitCode.OK


@reassign.command()
@click.argument("document", type=FILE, metavar="[FILE]", required=False)
@broker_options
def cancel(document: BinaryIO | None) -> int:
    """Take back the moves under way: all of them, or those of a document."""
    wanted = parse(document.read()) if document is not None else None

    async def work(client: Client) -> int:
        moving = [move.partition for move in await list_reassignments(client)]
        chosen = [each for each in moving if wanted is None or each in wanted]
        refusals = await reassign_partitions(client, dict.fromkeys(chosen)) if chosen else {}
        if refusals:
            return complain_of(refusals)
        say(f"Took back the moves of {counted(len(chosen), 'partition')}.")
        return ExitCode.OK

    return with_client(work)


def _ids(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.UsageError(f"--brokers takes ids with commas between them, not {text!r}.")
    return frozenset(int(part) for part in parts)


def _move_json(move: Reassignment) -> dict[str, object]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "replicas": target_of(move),
        "adding": move.adding,
        "removing": move.removing,
    }
