"""`ottla cluster`: the brokers of a cluster and their disks, its health, and one of one's own."""

from __future__ import annotations

import click

from ottla.cli.cluster_features import features
from ottla.cli.cluster_status import status
from ottla.cli.cluster_up import up
from ottla.cli.connection_options import broker_options, json_option
from ottla.cli.message import say
from ottla.cli.output import bytes_text, print_json, print_table
from ottla.cli.session import with_client
from ottla.clients.client import Client
from ottla.clients.cluster import Cluster, describe_cluster
from ottla.clients.log_dirs import LogDir, describe_log_dirs


@click.group()
def cluster() -> None:
    """Describe a cluster, see whether it is well, or start one on this machine."""


cluster.add_command(features)
cluster.add_command(status)
cluster.add_command(up)


@cluster.command()
@json_option
@broker_options
def describe(as_json: bool) -> None:
    """Show the cluster's id, its controller, its brokers and their data directories."""
    found, directories = with_client(_look)
    if as_json:
        print_json(_cluster_json(found, directories))
        return
    say(f"cluster     {found.id}")
    say(f"controller  {found.controller if found.controller >= 0 else 'none'}")
    say("")
    print_table(
        ["broker", "address", "rack", "partitions", "data", "free", "directory"],
        [
            (
                broker.id,
                broker.address,
                broker.rack,
                len(directory.partition_bytes),
                bytes_text(directory.used_bytes),
                bytes_text(directory.usable_bytes),
                directory.path,
            )
            for broker in found.brokers
            for directory in directories
            if directory.broker == broker.id
        ],
    )


async def _look(client: Client) -> tuple[Cluster, list[LogDir]]:
    found = await describe_cluster(client)
    await client.refresh()
    directories = [
        directory
        for broker in found.brokers
        for directory in await describe_log_dirs(client, broker.id)
    ]
    return found, directories


def _cluster_json(found: Cluster, directories: list[LogDir]) -> dict[str, object]:
    brokers = [
        {
            "id": broker.id,
            "host": broker.address.host,
            "port": broker.address.port,
            "rack": broker.rack,
            "log_dirs": [
                {
                    "path": directory.path,
                    "error": directory.error.name,
                    "partitions": len(directory.partition_bytes),
                    "used_bytes": directory.used_bytes,
                    "total_bytes": directory.total_bytes,
                    "usable_bytes": directory.usable_bytes,
                }
                for directory in directories
                if directory.broker == broker.id
            ],
        }
        for broker in found.brokers
    ]
    return {"id": found.id, "controller": found.controller, "brokers": brokers}
