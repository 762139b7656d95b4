"""`ottla cluster features`: what the whole cluster has, and raising it after an upgrade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.message import say
from ottla.cli.output import print_json, print_table
from ottla.cli.session import with_client
from ottla.clients.client import Client
from ottla.clients.cluster import describe_cluster
from ottla.clients.features import Feature, Features, describe_features, update_features


@dataclass(frozen=True, slots=True)
class Level:
    """A feature: the level in force, and the highest that every broker can have."""

    name: str
    in_force: int
    highest: int


@click.command()
@click.option("--raise", "is_raised", is_flag=True, help="Raise each as far as all brokers allow.")
@json_option
@broker_options
def features(is_raised: bool, as_json: bool) -> None:
    """Show the features of the cluster, or raise them once every broker has been upgraded.

    A level that was raised is never lowered again.
    """
    levels = with_client(_raise if is_raised else _look)
    if as_json:
        print_json(
            [
                {"name": each.name, "level": each.in_force, "highest": each.highest}
                for each in levels
            ]
        )
        return
    print_table(
        ["feature", "level", "highest"],
        [(each.name, each.in_force, each.highest) for each in levels],
    )
    if any(each.in_force < each.highest for each in levels):
        say("All brokers can have more: ottla cluster features --raise")


async def _look(client: Client) -> list[Level]:
    found = await describe_cluster(client)
    await client.refresh()
    return levels_of([await describe_features(client, each.id) for each in found.brokers])


async def _raise(client: Client) -> list[Level]:
    wanted = {each.name: each.highest for each in await _look(client)}
    await update_features(client, wanted)
    return [Level(name, level, level) for name, level in wanted.items()]


def levels_of(told: Sequence[Features]) -> list[Level]:
    """What all brokers can have, from what each says; what is in force is never more."""
    names = sorted({name for each in told for name in each.by_name})
    return [_level(name, [each.by_name for each in told]) for name in names]


def _level(name: str, told: Sequence[Mapping[str, Feature]]) -> Level:
    known = [each[name] for each in told if name in each]
    in_force = max(feature.level for feature in known)
    highest = min(
        feature.supported.last if feature.supported is not None else 0 for feature in known
    )
    return Level(name, in_force, max(in_force, highest if len(known) == len(told) else 0))
