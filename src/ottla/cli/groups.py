"""`ottla groups`: list, describe, delete; lag and offsets come from the files beside."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Final

import click

from ottla.cli.complaint import complain
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.group_lag import Question, lag, look
from ottla.cli.group_reset import export, import_command, reset
from ottla.cli.lag_report import GroupLag, lag_json
from ottla.cli.message import paint, say
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.session import with_client
from ottla.cli.topic_selection import TopicSelection, matches, parse_selection
from ottla.cli.topics import confirm
from ottla.clients.client import Client
from ottla.clients.group_offsets import by_topic, committed_offsets, delete_offsets
from ottla.clients.groups import GroupMember, delete_groups, describe_group, list_groups
from ottla.clients.metadata import BrokerInfo
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition

STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
    "NotReady",
)
TYPES: Final = ("classic", "consumer", "share", "streams")


@click.group()
def groups() -> None:
    """See how far groups have read, and set where they go on."""


for _command in (lag, reset, export, import_command):
    groups.add_command(_command)


@groups.command("list")
@click.option(
    "--state",
    "-s",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only groups in this state. May be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(TYPES, case_sensitive=False),
    help="Only groups of this protocol. May be repeated.",
)
@json_option
@broker_options
def list_command(states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> None:
    """List the groups."""
    found = with_client(lambda client: list_groups(client, states=states, types=types))
    if as_json:
        print_json(
            [
                {
                    "group": group.id,
                    "type": group.type,
                    "state": group.state,
                    "protocol_type": group.protocol_type,
                    "coordinator": group.coordinator,
                }
                for group in found
            ]
        )
        return
    if not found and sys.stdout.isatty():
        say("There are no such groups." if states or types else "There are no groups.")
        return
    print_table(
        ["group", "type", "state", "coordinator"],
        [(each.id, each.type or None, each.state or None, each.coordinator) for each in found],
    )


@dataclass(frozen=True, slots=True)
class Described:
    """All there is to say about a group."""

    lag: GroupLag
    coordinator: BrokerInfo | None


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@json_option
@broker_options
def describe(names: tuple[str, ...], as_json: bool) -> None:
    """Show state, members, assignments and lag of groups."""

    async def work(client: Client) -> list[Described]:
        found = await look(client, Question(names, ()))
        brokers = client.picture.brokers
        return [Described(each, brokers.get(each.group.coordinator)) for each in found]

    described = with_client(work)
    if as_json:
        print_json([_described_json(each) for each in described])
        return
    for index, each in enumerate(described):
        if index:
            say("")
        _print_described(each)


def _print_described(described: Described) -> None:
    group = described.lag.group
    address = f" at {described.coordinator.address}" if described.coordinator else ""
    say(paint(group.id, bold=True))
    say(f"type         {group.type}{f', epoch {group.epoch}' if group.epoch is not None else ''}")
    say(f"state        {group.state}")
    say(f"assignor     {group.assignor or '-'}")
    say(f"coordinator  broker {group.coordinator}{address}")
    say(f"lag          {counted(described.lag.total, 'record')}")
    say("")
    if group.members:
        print_table(
            ["client", "host", "instance", "partitions", "member"],
            [
                (each.client_id, each.host, each.instance_id, _assigned_text(each), each.id)
                for each in group.members
            ],
        )
    else:
        say("It has no members.")
    if not described.lag.rows:
        return
    say("")
    owners = group.owners()
    rows = []
    for row in described.lag.rows:
        owner = owners.get(row.partition)
        client_id = owner.client_id if owner else None
        place = (row.partition.topic, row.partition.partition)
        rows.append((*place, row.committed, row.end, row.lag, client_id))
    print_table(["topic", "partition", "committed", "end", "lag", "client"], rows)


def _assigned_text(member: GroupMember) -> str:
    """`orders:0,1 users:2`, and what it has still to give up or to get."""
    text = partitions_text(member.assigned) or "-"
    if member.target is None or set(member.target) == set(member.assigned):
        return text
    return f"{text} (soon {partitions_text(member.target) or 'none'})"


def partitions_text(partitions: tuple[TopicPartition, ...]) -> str:
    """Partitions as they are written on the command line."""
    return " ".join(
        f"{topic}:{','.join(str(row.partition) for row in rows)}"
        for topic, rows in by_topic(partitions).items()
    )


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    help="Forget only how far they have read there. May be repeated.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="A group that does not exist is no error.")
@broker_options
def delete(names: tuple[str, ...], topics: tuple[str, ...], yes: bool, if_exists: bool) -> int:
    """Delete groups with all their offsets. They must have no members at that time."""
    if topics:
        return _forget(names, tuple(parse_selection(text) for text in topics), yes)
    confirm(f"Delete {', '.join(names)} with all offsets?", yes)
    worst = int(ExitCode.OK)
    for each in with_client(lambda client: delete_groups(client, names)):
        if each.error is None:
            say(f"Deleted group {each.name}.")
        elif if_exists and each.error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            say(f"There is no group {each.name}.")
        else:
            worst = complain(each.error)
    return worst


def _forget(names: tuple[str, ...], selections: tuple[TopicSelection, ...], yes: bool) -> int:
    """Deletes offsets of the selected partitions."""
    confirm(f"Forget how far {', '.join(names)} read in {len(selections)} topics?", yes)

    async def forget(name: str, client: Client) -> int:
        committed = await committed_offsets(client, name)
        chosen = [partition for partition in committed if matches(selections, partition)]
        if not committed:
            await describe_group(client, name)  # says so if there is no such group
        if chosen:
            await delete_offsets(client, name, chosen)
        return len(chosen)

    worst = int(ExitCode.OK)
    for name in dict.fromkeys(names):
        try:
            count = with_client(partial(forget, name))
        except OttlaError as error:
            worst = complain(error)
        else:
            say(f"Deleted {counted(count, 'offset')} of group {name}.")
    return worst


def _described_json(described: Described) -> dict[str, object]:
    group = described.lag.group
    coordinator = described.coordinator
    return {
        **lag_json(described.lag),
        "type": group.type,
        "epoch": group.epoch,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": {
            "id": group.coordinator,
            "host": coordinator.address.host if coordinator else None,
            "port": coordinator.address.port if coordinator else None,
        },
        "members": [_member_json(member) for member in group.members],
    }


def _member_json(member: GroupMember) -> dict[str, object]:
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "subscription": member.subscription,
        "assigned": _partitions_json(member.assigned),
        "target": None if member.target is None else _partitions_json(member.target),
    }


def _partitions_json(partitions: tuple[TopicPartition, ...]) -> list[dict[str, object]]:
    return [{"topic": each.topic, "partition": each.partition} for each in partitions]
