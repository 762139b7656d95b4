"""`ottla log adopt`: make topics of logs again whose metadata was lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.connection_options import json_option
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import note, say, say_error
from ottla.cli.output import counted, print_json, print_table

if TYPE_CHECKING:
    from ottla.broker.adoption import AdoptionReport


@click.command()
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--metadata",
    metavar="ADDRESS",
    help="The cluster's ZooKeeper, if the broker is one of a cluster: zookeeper://host:2181.",
)
@click.option(
    "--node-id",
    type=click.IntRange(min=0),
    help="The broker's number, if its meta.properties is lost too.",
)
@json_option
def adopt(data: Path, metadata: str | None, node_id: int | None, as_json: bool) -> int:
    """Rebuild the topics of a stopped broker from the logs in its data directory.

    For a broker that refuses to start because its metadata is damaged, empty or another's. The
    logs tell topics, ids and partitions. Their settings are lost: adopted topics keep all
    records until retention.ms is set again. In a cluster, stop all brokers and run this for
    each of them before the first one is started.

    \b
    ottla log adopt /var/lib/ottla
    ottla log adopt /var/lib/ottla --metadata zookeeper://zk1:2181,zk2:2181
    """
    from ottla.broker.adoption import adopt_logs
    from ottla.broker.system_clock import SystemClock
    from ottla.settings.broker import BrokerSettings

    texts = {"log.dirs": str(data)}
    if metadata is not None:
        texts["metadata"] = metadata
    if node_id is not None:
        texts["node.id"] = str(node_id)
    settings = BrokerSettings.from_texts(texts)
    report = asyncio.run(adopt_logs(settings, str(data), SystemClock()))
    (_print_json if as_json else _print_text)(report)
    return ExitCode.FAILED if report.adoption.refused else ExitCode.OK


def _print_json(report: AdoptionReport) -> None:
    print_json(
        {
            "adopted": report.adoption.adopted,
            "known": report.adoption.known,
            "refused": report.adoption.refused,
            "set_aside": list(report.set_aside),
        }
    )


def _print_text(report: AdoptionReport) -> None:
    adopted = report.adoption.adopted
    for path in report.set_aside:
        note(f"damaged metadata was moved to {path}")
    if adopted:
        rows = [
            (log.partition.topic, log.partition.partition, log.start_offset, log.end_offset)
            for log in report.logs
            if log.partition.partition in adopted.get(log.partition.topic, ())
        ]
        print_table(("topic", "partition", "start offset", "end offset"), rows)
        note(
            "Settings of these topics are lost. They keep all records until you set their retention"
            " again: ottla configs set topic NAME retention.ms=604800000"
        )
    for topic, reason in report.adoption.refused.items():
        say_error(f"{topic} was not adopted: {reason}.")
    known = f", {counted(len(report.adoption.known), 'topic')} known before"
    say(f"{counted(len(adopted), 'topic')} adopted{known if report.adoption.known else ''}")
