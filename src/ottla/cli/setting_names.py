"""Names of settings that somebody typed: a broker sets unknown ones back without a word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from ottla.clients.client import Client
from ottla.clients.configs import ConfigEntry, Resource, ResourceKind, describe_configs


async def check_settings(client: Client, resource: Resource, names: Sequence[str]) -> None:
    """UsageError where the resource has no setting of one of these names."""
    asked = resource
    if resource.kind is ResourceKind.BROKER and not resource.name:
        # For all of them a broker tells only what was set: one of them tells what there is.
        asked = Resource(ResourceKind.BROKER, str(min((await client.refresh(())).brokers)))
    reject_unknown(asked, names, await describe_configs(client, asked, names))


def reject_unknown(
    resource: Resource, names: Iterable[str], entries: Iterable[ConfigEntry]
) -> None:
    """UsageError if not all names are among what the broker told of them."""
    missing = set(names) - {entry.name for entry in entries}
    if missing:
        names_missing = ", ".join(sorted(missing))
        if resource.kind is ResourceKind.LOGGER:
            raise click.UsageError(f"There is no logger named {names_missing}.")
        kind = resource.kind.name.lower()
        raise click.UsageError(f"A {kind} has no setting named {names_missing}.")
