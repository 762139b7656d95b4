"""`ottla topics`: create, list, describe, alter and delete."""

from __future__ import annotations

import sys
from typing import Final

import click

from ottla.cli.complaint import fix_for
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import paint, say, say_error
from ottla.cli.name_value import parse_pairs
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.session import with_client
from ottla.cli.setting_names import check_settings
from ottla.clients.client import Client
from ottla.clients.configs import (
    ConfigEntry,
    Resource,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from ottla.clients.metadata import TopicInfo
from ottla.clients.offsets import offset_ranges
from ottla.clients.topics import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topics,
    describe_topic,
    list_topics,
)
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import NO_TOPIC_ID, Offset

KEPT_INSIDE: Final = {
    "__consumer_offsets": "the positions of all groups",
    "__transaction_state": "the state of all transactions",
}


@click.group()
def topics() -> None:
    """Create, list, describe, alter and delete topics."""


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="How many partitions.")
@click.option("--replicas", "-r", type=click.IntRange(min=1), help="How many copies of each.")
@click.option("--config", "-c", "configs", multiple=True, metavar="NAME=VALUE", help="A setting.")
@click.option("--if-not-exists", is_flag=True, help="Leave a topic that exists as it is.")
@click.option("--dry-run", is_flag=True, help="Only check whether it could be created.")
@broker_options
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> int:
    """Create topics.

    \b
    ottla topics create orders --partitions 6
    ottla topics create users -c cleanup.policy=compact
    """
    settings = parse_pairs(configs)
    wanted = [
        NewTopic(name, partitions or BROKER_DEFAULT, replicas or BROKER_DEFAULT, settings)
        for name in dict.fromkeys(names)
    ]
    results = with_client(lambda client: create_topics(client, wanted, validate_only=dry_run))
    return max(_report_created(result, if_not_exists, dry_run) for result in results)


def _report_created(result: CreatedTopic, if_not_exists: bool, dry_run: bool) -> int:
    if result.error is None:
        counts = ""
        if result.partition_count > 0:
            counts = (
                f" with {counted(result.partition_count, 'partition')}"
                f" and {result.replication_factor} "
                + ("copy" if result.replication_factor == 1 else "copies")
                + " of each"
            )
        say(f"{'Could create' if dry_run else 'Created'} topic {result.name}{counts}.")
        return ExitCode.OK
    if if_not_exists and result.error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
        say(f"Topic {result.name} exists already.")
        return ExitCode.OK
    return _failed(result.error)


@topics.command("list")
@click.option("--internal", is_flag=True, help="Show the brokers' own topics too.")
@json_option
@broker_options
def list_command(internal: bool, as_json: bool) -> None:
    """List the topics."""
    found = with_client(lambda client: list_topics(client, internal=internal))
    if as_json:
        print_json([_topic_json(topic) for topic in found])
        return
    if not found and sys.stdout.isatty():
        say("There are no topics. Create one with `ottla topics create NAME`.")
        return
    print_table(
        ["topic", "partitions", "replicas"],
        [(topic.name, len(topic.partitions), topic.replication_factor) for topic in found],
    )


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@broker_options
def describe(names: tuple[str, ...], as_json: bool) -> None:
    """Show partitions, leaders, offsets and changed settings of topics."""
    described = with_client(lambda client: _describe_all(client, names))
    if as_json:
        print_json([_described_json(*each) for each in described])
        return
    for index, each in enumerate(described):
        if index:
            say("")
        _print_described(*each)


Described = tuple[TopicInfo, dict[int, tuple[Offset, Offset]], list[ConfigEntry]]


async def _describe_all(client: Client, names: tuple[str, ...]) -> list[Described]:
    described: list[Described] = []
    for name in names:
        topic = await describe_topic(client, name)
        led = [row.partition for row in topic.partitions if row.leader >= 0]
        ranges = await offset_ranges(client, name, led)
        configs = await describe_configs(client, Resource(ResourceKind.TOPIC, name))
        described.append((topic, ranges, [entry for entry in configs if entry.source == 1]))
    return described


def _print_described(
    topic: TopicInfo, ranges: dict[int, tuple[Offset, Offset]], configs: list[ConfigEntry]
) -> None:
    say(paint(topic.name, bold=True))
    if topic.id != NO_TOPIC_ID:
        say(f"id        {topic.id.hex()}")
    say(f"settings  {', '.join(f'{entry.name}={entry.value}' for entry in configs) or 'defaults'}")
    say("")
    rows = []
    for row in topic.partitions:
        start, end = ranges.get(row.partition, (None, None))
        count = None if start is None or end is None else end - start
        leader = row.leader if row.leader >= 0 else "none"
        rows.append((row.partition, leader, row.replicas, row.in_sync, start, end, count))
    print_table(["partition", "leader", "replicas", "in sync", "start", "end", "records"], rows)


@topics.command()
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="Raise the count to this.")
@click.option("--config", "-c", "configs", multiple=True, metavar="NAME=VALUE", help="Set this.")
@click.option("--unset", "-u", multiple=True, metavar="NAME", help="Back to the default.")
@broker_options
def alter(
    name: str, partitions: int | None, configs: tuple[str, ...], unset: tuple[str, ...]
) -> None:
    """Add partitions to a topic and change its settings."""
    if partitions is None and not configs and not unset:
        raise click.UsageError("Say what to change: --partitions, --config or --unset.")
    settings = parse_pairs(configs)

    async def work(client: Client) -> None:
        if settings or unset:
            resource = Resource(ResourceKind.TOPIC, name)
            await check_settings(client, resource, unset)
            await alter_configs(client, resource, set_values=settings, unset=unset)
        if partitions is not None:
            await add_partitions(client, name, partitions)

    with_client(work)
    if partitions is not None:
        say(f"Topic {name} has {counted(partitions, 'partition')} now.")
        say("Keys may map to other partitions from here on.")
    if settings or unset:
        say(f"Changed {counted(len(settings) + len(unset), 'setting')} of topic {name}.")


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@broker_options
def delete(names: tuple[str, ...], yes: bool, if_exists: bool) -> int:
    """Delete topics with all their records."""
    for name in names:
        if name in KEPT_INSIDE:
            raise click.UsageError(f"Topic {name} has {KEPT_INSIDE[name]}: it cannot be deleted.")
    confirm(f"Delete {', '.join(names)} with all records?", yes)
    outcomes = with_client(lambda client: delete_topics(client, names))
    worst = int(ExitCode.OK)
    for each in outcomes:
        if each.error is None:
            say(f"Deleted topic {each.name}.")
        elif if_exists and each.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            say(f"There is no topic {each.name}.")
        else:
            worst = _failed(each.error)
    return worst


def confirm(question: str, yes: bool) -> None:
    """Asks before something that cannot be undone; where nobody can be asked, --yes is needed."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This cannot be undone; add --yes to do it without being asked.")
    click.confirm(question, abort=True)


def _failed(error: OttlaError) -> int:
    say_error(str(error), fix_for(error))
    return ExitCode.FAILED


def _topic_json(topic: TopicInfo) -> dict[str, object]:
    return {
        "name": topic.name,
        "id": topic.id.hex(),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
    }


def _described_json(
    topic: TopicInfo, ranges: dict[int, tuple[Offset, Offset]], configs: list[ConfigEntry]
) -> dict[str, object]:
    partitions = []
    for row in topic.partitions:
        start, end = ranges.get(row.partition, (None, None))
        partitions.append(
            {
                "partition": row.partition,
                "leader": row.leader,
                "leader_epoch": row.leader_epoch,
                "replicas": row.replicas,
                "in_sync": row.in_sync,
                "start_offset": start,
                "end_offset": end,
            }
        )
    settings = {entry.name: entry.value for entry in configs}
    return {**_topic_json(topic), "configs": settings, "partitions": partitions}
