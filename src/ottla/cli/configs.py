"""`ottla configs`: read and change settings of topics, brokers and their loggers."""

from __future__ import annotations

import sys

import click

from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.message import say
from ottla.cli.name_value import parse_pairs
from ottla.cli.output import counted, print_json, print_table
from ottla.cli.session import with_client
from ottla.cli.setting_names import check_settings, reject_unknown
from ottla.clients.client import Client
from ottla.clients.configs import (
    ConfigEntry,
    Resource,
    ResourceKind,
    alter_configs,
    describe_configs,
)

KIND = click.Choice(["topic", "broker", "logger"])


@click.group()
def configs() -> None:
    """Read and change settings of topics and brokers, and how much a broker logs.

    \b
    ottla configs get topic orders
    ottla configs set topic orders retention.ms=86400000
    ottla configs get broker 1 --all
    ottla configs set broker default log.retention.ms=86400000
    ottla configs set logger 1 ottla.requests=DEBUG
    """


@configs.command()
@click.argument("kind", type=KIND)
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[SETTING]...")
@click.option("--all", "-a", "show_all", is_flag=True, help="Show settings at their default too.")
@json_option
@broker_options
def get(kind: str, name: str, settings: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    """Show the settings of a topic or a broker; those that were changed, unless some are named.

    Of a broker's loggers, the level of each.
    """
    resource = _resource(kind, name)
    entries = with_client(lambda client: describe_configs(client, resource, settings))
    reject_unknown(resource, settings, entries)
    shown = [entry for entry in entries if show_all or settings or not entry.is_default]
    if as_json:
        print_json([_entry_json(entry) for entry in shown])
        return
    if not shown and sys.stdout.isatty():
        say(f"All settings of {resource} are at their defaults; --all shows them.")
        return
    print_table(
        ["setting", "value", "from", "live"],
        [
            (entry.name, _value_text(entry), entry.source.words, not entry.is_read_only)
            for entry in shown
        ],
    )


@configs.command("set")
@click.argument("kind", type=KIND)
@click.argument("name")
@click.argument("pairs", nargs=-1, required=True, metavar="SETTING=VALUE...")
@click.option("--dry-run", is_flag=True, help="Only check whether it could be set.")
@broker_options
def set_command(kind: str, name: str, pairs: tuple[str, ...], dry_run: bool) -> None:
    """Set settings: all of them, or none if one is refused."""
    resource = _resource(kind, name)
    values = parse_pairs(pairs)
    with_client(
        lambda client: alter_configs(client, resource, set_values=values, validate_only=dry_run)
    )
    say(f"{'Could set' if dry_run else 'Set'} {counted(len(values), 'setting')} of {resource}.")


@configs.command()
@click.argument("kind", type=KIND)
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING...")
@broker_options
def unset(kind: str, name: str, settings: tuple[str, ...]) -> None:
    """Give settings back their defaults."""
    resource = _resource(kind, name)

    async def run(client: Client) -> None:
        await check_settings(client, resource, settings)
        await alter_configs(client, resource, unset=settings)

    with_client(run)
    say(f"Unset {counted(len(settings), 'setting')} of {resource}.")


def _resource(kind: str, name: str) -> Resource:
    if kind == "topic":
        return Resource(ResourceKind.TOPIC, name)
    if kind == "broker" and name == "default":
        return Resource(ResourceKind.BROKER, "")
    if not name.isdigit():
        or_all = ", or 'default' for all" if kind == "broker" else ""
        raise click.UsageError(f"A broker is named by its number{or_all}; not {name!r}.")
    return Resource(ResourceKind.BROKER if kind == "broker" else ResourceKind.LOGGER, name)


def _value_text(entry: ConfigEntry) -> str:
    return "(hidden)" if entry.is_sensitive else entry.value if entry.value is not None else "-"


def _entry_json(entry: ConfigEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name.lower(),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "doc": entry.doc,
    }
