"""`ottla demo`: start a broker, show records going through it, and say what to do next."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from ottla import __version__
from ottla.aio import Consumer, Producer
from ottla.cli.demo_display import Delivery, DemoDisplay, open_display
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import say, say_error
from ottla.cli.session import client_options, consumer_at, producer_at
from ottla.clients.address import DEFAULT_PORT, Address, parse_address
from ottla.clients.client import Client
from ottla.clients.offsets import offset_ranges
from ottla.clients.topics import NewTopic, create_topics
from ottla.errors import ErrorCode
from ottla.model.ids import Offset, TopicPartition

TOPIC: Final = "demo"
PARTITION_COUNT: Final = 3
RECORD_COUNT: Final = 30
PACE_S: Final = 0.1
PORTS_TRIED: Final = 20
TIMEOUT_S: Final = 15.0
STOP_TIMEOUT_S: Final = 15.0
CITIES: Final = ("Oslo", "Lima", "Kyoto", "Cairo", "Perth", "Quito")
READY: Final = " ready on "


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """The broker's process, where it listens and where its data is."""

    process: subprocess.Popen[str]
    address: Address
    data: Path


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="[default: 127.0.0.1:9092 or the next free]")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory that holds the data.  [default: ~/.local/share/ottla/demo]",
)
@click.option("--once", is_flag=True, help="Stop the broker after the demonstration.")
def demo(listen: str | None, data: Path | None, once: bool) -> int:
    """Start a broker, watch records flow through it, then use it until Ctrl-C."""
    place = parse_address(listen) if listen else _free_address()
    directory = data or _default_data()
    directory.mkdir(parents=True, exist_ok=True)
    with _broker(place, directory) as broker:
        if broker is None:
            return ExitCode.FAILED
        say(f"Ottla {__version__} serves Kafka's protocol on {broker.address}.")
        asyncio.run(_show(broker.address))
        if once:
            return ExitCode.OK
        _say_what_next(broker)
        return _wait(broker)


async def _show(address: Address) -> None:
    ends = await _prepare(address)
    place = str(address)
    async with (
        producer_at(place, TIMEOUT_S, linger_ms=0) as producer,
        consumer_at(place, TIMEOUT_S) as consumer,
    ):
        consumer.assign(ends)
        for where, end in ends.items():
            consumer.seek(where, end)
        with open_display(RECORD_COUNT) as display:
            consuming = asyncio.create_task(_consume(consumer, display))
            try:
                await _produce(producer)
                await asyncio.wait_for(consuming, TIMEOUT_S)
            finally:
                consuming.cancel()


async def _prepare(address: Address) -> dict[TopicPartition, Offset]:
    """Creates the topic, unless an earlier demonstration has; returns where its partitions end."""
    async with Client([address], client_options(TIMEOUT_S)) as client:
        for created in await create_topics(client, [NewTopic(TOPIC, PARTITION_COUNT)]):
            if created.error and created.error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise created.error
        topic = await client.wait_for_topic(TOPIC)
        ranges = await offset_ranges(client, TOPIC, [row.partition for row in topic.partitions])
        return {TopicPartition(TOPIC, each): end for each, (_, end) in ranges.items()}


async def _produce(producer: Producer) -> None:
    """A reading of a thermometer ten times a second, keyed by its city."""
    for number in range(RECORD_COUNT):
        city = CITIES[number * 5 % len(CITIES)]
        celsius = 10 + (number * 7919 % 211) / 10
        value = f'{{"city": "{city}", "celsius": {celsius:.1f}}}'
        await producer.send_and_wait(TOPIC, value.encode(), city.encode())
        await asyncio.sleep(PACE_S)


async def _consume(consumer: Consumer, display: DemoDisplay) -> None:
    seen = 0
    while seen < RECORD_COUNT:
        records = await consumer.poll()
        now_ms = time.time_ns() // 1_000_000
        seen += len(records)
        for record in records:
            display.add(Delivery(record, now_ms - record.timestamp_ms))


@contextmanager
def _broker(place: Address, data: Path) -> Iterator[RunningBroker | None]:
    """`ottla serve` in a process of its own, stopped at the end; None if it does not start."""
    command = [sys.executable, "-m", "ottla", "serve", "--listen", str(place)]
    command += ["--data", str(data), "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if READY not in line:
            process.wait()
            say_error("the broker did not start.", "see above for why")
            yield None
            return
        address = parse_address(line.split(READY, 1)[1].split(",")[0])
        yield RunningBroker(process, address, data)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _wait(broker: RunningBroker) -> int:
    """Returns when the broker ends or somebody presses Ctrl-C."""
    try:
        code = broker.process.wait()
    except KeyboardInterrupt:
        say("\nStopping the broker.")
        return ExitCode.OK
    return ExitCode.OK if code == 0 else ExitCode.FAILED


def _say_what_next(broker: RunningBroker) -> None:
    is_default = str(broker.address) == f"127.0.0.1:{DEFAULT_PORT}"
    option = "" if is_default else f" -b {broker.address}"
    say(
        f"""
The broker keeps running; its data is in {broker.data}. Ctrl-C stops it.

In another terminal:
  ottla{option} consume {TOPIC} --keys --timestamps
  echo hello | ottla{option} produce greetings --create
  ottla{option} topics list

From Python, with this client or any other for Kafka:
  import ottla
  with ottla.Producer("{broker.address}") as producer:
      producer.send("greetings", "hello from Python")"""
    )


def _free_address() -> Address:
    """The first port from Kafka's own on that nobody listens on; any free one if all are taken."""
    for port in range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED):
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            return Address("127.0.0.1", port)
    return Address("127.0.0.1", 0)


def _default_data() -> Path:
    share = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(share) / "ottla" / "demo"
