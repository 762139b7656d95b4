"""`ottla serve`: run a broker until it is told to stop."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ottla import __version__
from ottla.cli.message import note
from ottla.clients.address import parse_address
from ottla.settings.broker import BrokerSettings, broker_declarations
from ottla.settings.listeners import EVERY_INTERFACE
from ottla.settings.sources import from_pairs, read_file
from ottla.settings.unused import warnings

if TYPE_CHECKING:
    from ottla.broker.app import Broker

LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@click.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where clients connect; port 0 is any free one.  [default: 127.0.0.1:9092]",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory that holds the data.  [default: ottla-data]",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings by Kafka's names: a .properties file, or .toml.",
)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="One setting.")
@click.option("--advertise", metavar="HOST:PORT", help="The address clients are told, if another.")
@click.option(
    "--node-id", type=click.IntRange(min=0), help="The number of this broker in its cluster."
)
@click.option(
    "--metadata",
    metavar="ADDRESS",
    help="The cluster's ZooKeeper: zookeeper://host:2181,host2:2181/chroot."
    "  [default: a file, for a broker that stands alone]",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
def serve(
    listen: str | None,
    data: Path | None,
    config: Path | None,
    pairs: tuple[str, ...],
    advertise: str | None,
    node_id: int | None,
    metadata: str | None,
    log_level: str,
) -> None:
    """Run a broker that every Kafka client can use. Ctrl-C or SIGTERM stops it.

    \b
    ottla serve --listen 127.0.0.1:9092 --data ./data
    ottla serve --listen 0.0.0.0:9092 --advertise broker.example.com:9092 --data /var/lib/ottla
    ottla serve --config server.properties --set log.retention.hours=24
    ottla serve --node-id 2 --metadata zookeeper://127.0.0.1:2181 --listen 127.0.0.1:9093
    """
    texts = gather_settings(listen, data, config, pairs, advertise)
    if node_id is not None:
        texts["node.id"] = str(node_id)
    if metadata is not None:
        texts["metadata"] = metadata
    settings = BrokerSettings.from_texts(texts)
    logging.basicConfig(level=log_level.upper(), format=LOG_FORMAT, stream=sys.stderr)
    for warning in warnings(texts, broker_declarations()):
        note(f"note: {warning}")
    _run(texts, ", ".join(settings.data_directories()))


def gather_settings(
    listen: str | None,
    data: Path | None,
    config: Path | None,
    pairs: tuple[str, ...],
    advertise: str | None,
) -> dict[str, str]:
    """All settings given, by name: the file's, then --set, then the options that have own names."""
    texts = read_file(config) if config is not None else {}
    texts.update(from_pairs(pairs))
    if listen is not None or "listeners" not in texts:
        address = parse_address(listen or "127.0.0.1:9092")
        texts["listeners"] = f"PLAINTEXT://{address}"
        if address.port and address.host not in EVERY_INTERFACE:
            # What clients are told can be looked up then, as the brokers' settings show it.
            texts.setdefault("advertised.listeners", texts["listeners"])
    if advertise is not None:
        texts["advertised.listeners"] = f"PLAINTEXT://{parse_address(advertise)}"
    if data is not None:
        texts["log.dirs"] = str(data)
    return texts


def _run(texts: Mapping[str, str], data: str) -> None:
    from ottla.broker.app import serve as run_broker

    def ready(broker: Broker) -> None:
        click.echo(f"Ottla {__version__} ready on {broker.address}, data in {data}")
        sys.stdout.flush()

    run_broker(texts, ready=ready)
