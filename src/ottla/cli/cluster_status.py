"""`ottla cluster status`: is the cluster well, who has how much, what ails which partition."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.absence_report import Missing
from ottla.cli.cluster_health import (
    Ailing,
    Findings,
    Health,
    Ill,
    ailing_leaders,
    ailing_topics,
    grouped,
    health_of,
)
from ottla.cli.cluster_plan import target_of
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import paint, say
from ottla.cli.output import counted, print_json, print_table, table_of
from ottla.cli.session import with_client
from ottla.clients.absences import Absence, describe_absences
from ottla.clients.client import CONTROLLER, Client
from ottla.clients.cluster import describe_cluster
from ottla.clients.configs import Resource, ResourceKind, describe_configs
from ottla.clients.log_dirs import LogDir, describe_log_dirs
from ottla.clients.placement import look_at_placement
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, TopicPartition

if TYPE_CHECKING:
    from rich.console import RenderableType

ROWS_SHOWN_MAX: Final = 50
SHOWN_SINGLY_MAX: Final = 10
"""More ailing partitions than these are shown by what has happened to them."""
NAMED_MAX: Final = 3
SECONDS_BETWEEN_LOOKS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 2.0
"""What a broker is asked besides: it may just have died."""
MIN_IN_SYNC: Final = "min.insync.replicas"
BROKER_COLUMNS: Final = ("broker", "address", "rack", "leads", "preferred", "replicas", "behind")
AILING_COLUMNS: Final = ("partition", "state", "leader", "replicas", "in sync", "why")
GROUP_COLUMNS: Final = ("partitions", "state", "which", "why")
MOVE_COLUMNS: Final = ("moving", "replicas", "adding", "removing")


@click.command()
@click.option("--watch", "-w", is_flag=True, help="Look again every second, until Ctrl-C.")
@json_option
@broker_options
def status(watch: bool, as_json: bool) -> int:
    """Show whether the cluster is well; exit code 1 says that it is not.

    \b
    ottla cluster status
    ottla cluster status --watch
    ottla cluster status --json
    """
    if watch:
        with_client(_watch_live if sys.stdout.isatty() and not as_json else _watch_lines)
        return ExitCode.OK
    health = with_client(look_at_health)
    if as_json:
        print_json(health_json(health))
    else:
        _print(health)
    return ExitCode.OK if health.is_healthy else ExitCode.FAILED


async def look_at_health(client: Client) -> Health:
    """Asks for all that says how the cluster is; more where something is wrong."""
    placement = await look_at_placement(client)
    # Behind the placement, and from the same broker: who left a set in sync by dying is gone here.
    cluster = await describe_cluster(client, to=CONTROLLER)
    topics, moves = placement.topics, placement.moves
    ailing = ailing_topics(topics, moves)
    min_in_sync = {topic: await _min_in_sync(client, topic) for topic in ailing}
    asked = await asyncio.gather(*(_directories(client, each.id) for each in cluster.brokers))
    directories = [directory for found in asked for directory in found]
    leaders = ailing_leaders(topics, moves)
    told = await asyncio.gather(*(_absences(client, *each) for each in leaders.items()))
    absences = {partition: each for found in told for partition, each in found.items()}
    return health_of(Findings(cluster, topics, moves, min_in_sync, directories, absences))


async def _directories(client: Client, broker: BrokerId) -> list[LogDir]:
    """Nothing where the broker does not answer soon: it may just have died, as others will tell."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            return await describe_log_dirs(client, broker)
    except (OttlaError, TimeoutError):
        return []


async def _absences(
    client: Client, leader: BrokerId, topics: set[str]
) -> dict[TopicPartition, tuple[Absence, ...]]:
    """Nothing where the leader does not answer soon, or does not know the question."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            return await describe_absences(client, leader, sorted(topics))
    except (OttlaError, TimeoutError):
        return {}


async def _min_in_sync(client: Client, topic: str) -> int:
    entries = await describe_configs(client, Resource(ResourceKind.TOPIC, topic), [MIN_IN_SYNC])
    values = [each.value for each in entries if each.value and each.value.isdigit()]
    return int(values[0]) if values else 1


def summary(health: Health) -> str:
    """One line."""
    if not health.has_controller:
        return "There is no controller."
    parts = [
        f"{counted(health.offline, 'partition')} offline" if health.offline else "",
        f"{health.under_min_in_sync} under min in sync" if health.under_min_in_sync else "",
        f"{health.under_replicated} under-replicated" if health.under_replicated else "",
        f"{counted(len(health.moves), 'partition')} moving" if health.moves else "",
    ]
    parts += [
        f"broker {each.broker}: directory {each.path} failed" for each in health.broken_directories
    ]
    told = [part for part in parts if part]
    everything = (
        f"{counted(health.partitions, 'partition')} on {counted(len(health.loads), 'broker')}"
    )
    if health.is_healthy:
        return ", ".join([f"Healthy: {everything}, all in sync", *told]) + "."
    return ", ".join([f"Not healthy: {told[0]}", *told[1:], f"of {everything}"]) + "."


def _print(health: Health) -> None:
    say(paint(summary(health), "green" if health.is_healthy else "red", bold=True))
    say("")
    print_table(BROKER_COLUMNS, _broker_rows(health))
    if health.ailing:
        say("")
        columns, rows = _ailing_table(health)
        print_table(columns, rows[:ROWS_SHOWN_MAX])
        _say_rest(len(rows))
    if health.moves:
        say("")
        print_table(MOVE_COLUMNS, _move_rows(health))
        _say_rest(len(health.moves))


def _say_rest(count: int) -> None:
    if count > ROWS_SHOWN_MAX:
        say(f"... and {count - ROWS_SHOWN_MAX} more")


def _broker_rows(health: Health) -> list[tuple[object, ...]]:
    return [
        (
            f"{each.broker.id} (controller)" if each.is_controller else each.broker.id,
            each.broker.address,
            each.broker.rack,
            each.leads,
            each.is_preferred,
            each.replicas,
            each.behind,
        )
        for each in health.loads
    ]


def _ailing_table(health: Health) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Columns and rows: a partition each, or where these are many, what has happened to some."""
    if len(health.ailing) > SHOWN_SINGLY_MAX:
        return GROUP_COLUMNS, [_group_row(each) for each in grouped(health.ailing)]
    return AILING_COLUMNS, _ailing_rows(health)


def _group_row(ill: Ill) -> tuple[object, ...]:
    names = [str(each.partition) for each in ill.partitions[:NAMED_MAX]]
    rest = ["..."] if len(ill.partitions) > NAMED_MAX else []
    return len(ill.partitions), ill.state, ", ".join(names + rest), _why(ill.reasons)


def _why(reasons: tuple[str, ...]) -> str:
    return "; ".join(reasons) or "no replica that may lead is there"


def _ailing_rows(health: Health) -> list[tuple[object, ...]]:
    return [
        (
            each.partition,
            each.state,
            None if each.is_offline else each.row.leader,
            each.row.replicas,
            each.row.in_sync,
            _why(each.reasons),
        )
        for each in health.ailing
    ]


def _move_rows(health: Health) -> list[tuple[object, ...]]:
    return [
        (each.partition, target_of(each), each.adding, each.removing)
        for each in health.moves[:ROWS_SHOWN_MAX]
    ]


def picture_of(health: Health) -> RenderableType:
    """Everything, for a terminal that is drawn again and again."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [
        Text(summary(health), style="bold green" if health.is_healthy else "bold red"),
        Text(),
        table_of(BROKER_COLUMNS, _broker_rows(health)),
    ]
    if health.ailing:
        columns, rows = _ailing_table(health)
        parts += [Text(), table_of(columns, rows[:ROWS_SHOWN_MAX])]
    if health.moves:
        parts += [Text(), table_of(MOVE_COLUMNS, _move_rows(health))]
    return Group(*parts)


async def _watch_live(client: Client) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(Text("looking ..."), auto_refresh=False) as live:
        while True:
            try:
                shown = picture_of(await look_at_health(client))
            except OttlaError as error:
                shown = Text(f"No answer: {error}", style="bold red")
            live.update(shown, refresh=True)
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


async def _watch_lines(client: Client) -> None:
    """For pipes and log files: a line whenever something has changed."""
    last = ""
    while True:
        try:
            line = summary(await look_at_health(client))
        except OttlaError as error:
            line = f"No answer: {error}"
        if line != last:
            say(f"{time.strftime('%H:%M:%S')} {line}")
            sys.stdout.flush()
            last = line
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


def health_json(health: Health) -> dict[str, object]:
    """For programs."""
    return {
        "cluster": health.cluster.id,
        "healthy": health.is_healthy,
        "controller": health.cluster.controller if health.has_controller else None,
        "partitions": health.partitions,
        "offline": health.offline,
        "under_min_in_sync": health.under_min_in_sync,
        "under_replicated": health.under_replicated,
        "brokers": [
            {
                "id": each.broker.id,
                "address": str(each.broker.address),
                "rack": each.broker.rack,
                "leads": each.leads,
                "preferred": each.is_preferred,
                "replicas": each.replicas,
                "behind": each.behind,
            }
            for each in health.loads
        ],
        "ailing": [_ailing_json(each) for each in health.ailing],
        "moving": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "replicas": each.replicas,
                "adding": each.adding,
                "removing": each.removing,
            }
            for each in health.moves
        ],
        "broken_directories": [
            {"broker": each.broker, "path": each.path, "error": each.error.name}
            for each in health.broken_directories
        ],
    }


def _ailing_json(each: Ailing) -> dict[str, object]:
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "state": each.state,
        "leader": None if each.is_offline else each.row.leader,
        "replicas": each.row.replicas,
        "in_sync": each.row.in_sync,
        "min_in_sync": each.min_in_sync,
        "reasons": each.reasons,
        "missing": [_missing_json(missing) for missing in each.missing],
    }


def _missing_json(missing: Missing) -> dict[str, object]:
    """What is not known is null."""
    told: dict[str, object] = {"broker": missing.broker, "is_there": missing.is_there}
    told |= {"behind_bytes": missing.behind_bytes, "has_full_disk": missing.has_full_disk}
    absence = missing.absence
    if absence is None:
        return told | {"cause": None}
    numbers = {
        "left_ms": absence.left_ms,
        "silent_ms": absence.silent_ms,
        "lag_ms": absence.lag_ms,
        "lag_records": absence.lag_records,
        "silent_now_ms": absence.silent_now_ms,
        "lag_records_now": absence.lag_records_now,
    }
    known = {name: None if number < 0 else number for name, number in numbers.items()}
    return told | {"cause": absence.cause.name.lower()} | known
