"""What `ottla doctor` looks at: one finding after the other, each with what to do about it.

Goes from the outside in (name, port, protocol, cluster, advertised addresses, disks, clocks), stops
where nothing further can be asked, and ends with how the brokers answered all that. Prints nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.cli.output import bytes_text, counted
from ottla.clients.address import Address
from ottla.clients.broker_connection import BrokerConnection
from ottla.clients.client import Client, ClientOptions
from ottla.clients.client_metrics import ClientMetrics
from ottla.clients.log_dirs import LogDir, describe_log_dirs
from ottla.clients.metadata import BrokerInfo, ClusterPicture, TopicInfo
from ottla.clients.offsets import MAX_TIMESTAMP, list_offsets
from ottla.errors import OttlaError
from ottla.net.client_connection import ConnectionFailed, NotABroker, ResponseTimedOut

PARTITIONS_ASKED_MAX: Final = 200
"""How many partitions' newest timestamps are asked for."""
AHEAD_MS_MAX: Final = 60_000
FREE_FRACTION_MIN: Final = 0.05
SLOW_MS: Final = 500


class State(Enum):
    """How a finding is meant."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    state: State
    about: str
    detail: str
    fix: str | None = None
    is_unreachable: bool = False
    """There is no broker to talk to."""


async def examine(address: Address, options: ClientOptions) -> AsyncIterator[Finding]:
    """Looks at the broker at `address` and everything that a client would meet from there on."""
    resolved = await _resolve(address)
    yield resolved
    if resolved.state is State.BAD:
        return
    answered, connection = await _connect(address, options)
    for finding in answered:
        yield finding
    if connection is None:
        return
    connection.close()
    await connection.wait_closed()
    async with Client([address], options) as client:
        async for finding in _examine_cluster(client, address):
            yield finding


async def _resolve(address: Address) -> Finding:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return Finding(
            State.BAD,
            "name",
            f"{address.host} cannot be resolved",
            "check the spelling, /etc/hosts and the DNS server",
            is_unreachable=True,
        )
    numbers = dict.fromkeys(str(entry[4][0]) for entry in found)
    if list(numbers) == [address.host]:
        return Finding(State.GOOD, "name", f"{address.host} needs no look-up")
    return Finding(State.GOOD, "name", f"{address.host} is {', '.join(numbers)}")


async def _connect(
    address: Address, options: ClientOptions
) -> tuple[list[Finding], BrokerConnection | None]:
    started = time.monotonic()
    try:
        connection = await BrokerConnection.open(address, options.connection)
    except ConnectionFailed as error:
        return [_connect_finding(error)], None
    elapsed_ms = (time.monotonic() - started) * 1000
    if connection.versions.is_assumed:
        connection.close()
        return [await _silent_finding(address, options)], None
    state = State.WARNING if elapsed_ms > SLOW_MS else State.GOOD
    count = counted(len(connection.versions.ranges), "API")
    return [
        Finding(State.GOOD, "port", f"{address} accepts connections"),
        Finding(state, "protocol", f"it speaks Kafka's protocol: {count}, in {elapsed_ms:.0f} ms"),
    ], connection


def _connect_finding(error: ConnectionFailed) -> Finding:
    if isinstance(error, NotABroker):
        return Finding(State.BAD, "protocol", str(error), _protocol_fix(error), is_unreachable=True)
    if isinstance(error, ResponseTimedOut):
        return Finding(
            State.BAD,
            "protocol",
            f"{error.peer} accepts connections, but did not answer within {error.timeout_s:g} s",
            "check that this is the port of a broker, and look at the log and load of that broker",
            is_unreachable=True,
        )
    fix = (
        "start the broker (`ottla serve`), or check host and port; where it runs on another "
        "machine, it must listen on an address that others reach (--listen 0.0.0.0:PORT), and "
        "a firewall must let it pass"
    )
    return Finding(State.BAD, "port", str(error), fix, is_unreachable=True)


def _protocol_fix(error: NotABroker) -> str:
    if error.first_bytes[:5] == b"HTTP/":
        return "this is a web server's port: use the port of the broker's listener"
    if error.first_bytes[:1] in (b"\x15", b"\x16"):
        return "this is a TLS port: use the broker's plain listener"
    return "use the port of a Kafka listener"


async def _silent_finding(address: Address, options: ClientOptions) -> Finding:
    """The broker closed the connection when it was asked which versions it speaks."""
    if await _speaks_tls(address, options.connection.connect_timeout_s):
        return Finding(
            State.BAD,
            "protocol",
            f"{address} expects TLS",
            "use the broker's plain listener; this version of Ottla's tools speaks no TLS",
            is_unreachable=True,
        )
    return Finding(
        State.BAD,
        "protocol",
        f"{address} closes the connection when asked what it speaks",
        "check that this is the port of a broker (Kafka 0.10 or newer), and look at its log",
        is_unreachable=True,
    )


async def _speaks_tls(address: Address, timeout_s: float) -> bool:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    except ssl.SSLError as error:
        # A server that wants our certificate, or other versions, still speaks TLS.
        return "ALERT" in (error.reason or "")
    except (OSError, EOFError):
        return False
    writer.close()
    return True


async def _examine_cluster(client: Client, address: Address) -> AsyncIterator[Finding]:
    try:
        picture = await client.refresh(None)
    except OttlaError as error:
        yield Finding(State.BAD, "metadata", str(error), "look at the broker's log")
        return
    yield judge_cluster(picture)
    yield judge_controller(picture)
    for broker in picture.brokers.values():
        yield await _advertised(client, address, broker)
    yield judge_partitions(picture.topics.values())
    try:
        for broker in picture.brokers.values():
            for directory in await describe_log_dirs(client, broker.id):
                yield judge_log_dir(directory)
        yield await _clocks(client, picture)
    except OttlaError as error:
        yield Finding(State.WARNING, "details", f"not all could be asked: {error}")
    yield judge_answers(client.metrics())


def judge_cluster(picture: ClusterPicture) -> Finding:
    """Whether the cluster says who it is."""
    if not picture.brokers:
        return Finding(
            State.BAD, "cluster", "it knows of no brokers", "wait until it is up; see its log"
        )
    detail = (
        f"cluster {picture.cluster_id or 'without an id'}: "
        f"{counted(len(picture.brokers), 'broker')}, {counted(len(picture.topics), 'topic')}"
    )
    return Finding(State.GOOD, "cluster", detail)


def judge_controller(picture: ClusterPicture) -> Finding:
    """Whether somebody takes decisions."""
    if picture.controller in picture.brokers:
        return Finding(State.GOOD, "controller", f"broker {picture.controller}")
    return Finding(
        State.BAD,
        "controller",
        "there is none: topics cannot be created, leaders not elected",
        "look at the logs of the brokers for why none becomes the controller",
    )


async def _advertised(client: Client, asked: Address, broker: BrokerInfo) -> Finding:
    about = f"broker {broker.id}"
    problem = judge_advertised(asked, broker)
    if problem is not None:
        return problem
    try:
        await client.connection_to(broker.id)
    except ConnectionFailed as error:
        return Finding(
            State.BAD,
            about,
            f"clients are told to connect to {broker.address}, and that fails: {error}",
            "set advertised.listeners (--advertise HOST:PORT) to an address clients can reach",
        )
    return Finding(State.GOOD, about, f"its advertised address {broker.address} can be reached")


def judge_advertised(asked: Address, broker: BrokerInfo) -> Finding | None:
    """Advertised addresses that cannot work from where we ask, before they are tried."""
    host = broker.address.host
    fix = "set advertised.listeners (--advertise HOST:PORT) to an address clients can reach"
    if host in ("", "0.0.0.0", "::"):
        detail = f"it advertises {broker.address}, which is no address to connect to"
        return Finding(State.BAD, f"broker {broker.id}", detail, fix)
    if _is_loopback(host) and not _is_loopback(asked.host):
        detail = f"asked at {asked}, it sends clients to {broker.address}: their own machine"
        return Finding(State.BAD, f"broker {broker.id}", detail, fix)
    return None


def judge_partitions(topics: Iterable[TopicInfo]) -> Finding:
    """Partitions nobody leads, and such as lack replicas."""
    rows = [(topic.name, row) for topic in topics for row in topic.partitions]
    leaderless = [f"{name}-{row.partition}" for name, row in rows if row.leader < 0]
    behind = [
        f"{name}-{row.partition}" for name, row in rows if len(row.in_sync) < len(row.replicas)
    ]
    if leaderless:
        return Finding(
            State.BAD,
            "partitions",
            f"{counted(len(leaderless), 'partition')} without a leader: {_some(leaderless)}",
            "start the brokers that hold them (`ottla topics describe NAME` lists replicas)",
        )
    if behind:
        return Finding(
            State.WARNING,
            "partitions",
            f"{counted(len(behind), 'partition')} with replicas missing: {_some(behind)}",
            "start the missing brokers, or wait until they have caught up",
        )
    return Finding(State.GOOD, "partitions", f"{counted(len(rows), 'partition')}, all led")


def judge_log_dir(directory: LogDir) -> Finding:
    """Whether a data directory works and has room."""
    about = f"disk of broker {directory.broker}"
    if directory.error:
        detail = f"{directory.path} is out of use: {directory.error.sentence}"
        return Finding(State.BAD, about, detail, "repair the disk and restart the broker")
    sizes = f"{directory.path} holds {bytes_text(directory.used_bytes)}"
    if directory.total_bytes <= 0:
        return Finding(State.GOOD, about, sizes)
    sizes += f", {bytes_text(directory.usable_bytes)} free"
    if directory.usable_bytes < directory.total_bytes * FREE_FRACTION_MIN:
        fix = "free space, or lower retention.ms or retention.bytes of the largest topics"
        return Finding(State.WARNING, about, sizes, fix)
    return Finding(State.GOOD, about, sizes)


def judge_answers(served: ClientMetrics) -> Finding:
    """Whether the brokers answered what was asked until here, quickly and without holding back."""
    about = "answers"
    asked = served.requests_answered + served.requests_failed
    if served.requests_failed:
        return Finding(
            State.WARNING,
            about,
            f"{served.requests_failed} of {counted(asked, 'request')} got none",
            "look at the network between here and the brokers, and at their logs",
        )
    if served.throttled_ms:
        return Finding(
            State.WARNING,
            about,
            f"a quota held them back for {served.throttled_ms} ms in all",
            "raise the quotas of this user or client, or ask for less at a time",
        )
    detail = (
        f"{counted(asked, 'request')} in {served.request_latency_avg_ms:.1f} ms on average, "
        f"{served.request_latency_max_ms:.1f} ms at most; "
        f"connecting took {served.connect_max_ms:.1f} ms at most"
    )
    if max(served.request_latency_avg_ms, served.connect_max_ms) > SLOW_MS:
        fix = "look at the load of the brokers and at the network between; see their logs"
        return Finding(State.WARNING, about, f"slow: {detail}", fix)
    return Finding(State.GOOD, about, detail)


async def _clocks(client: Client, picture: ClusterPicture) -> Finding:
    """No API tells the broker's time; records from the future show that some clock is wrong."""
    now_ms = time.time_ns() // 1_000_000
    newest: dict[str, int] = {}
    asked = 0
    for topic in picture.topics.values():
        partitions = [row.partition for row in topic.partitions if row.leader >= 0]
        asked += len(partitions)
        if asked > PARTITIONS_ASKED_MAX:
            break
        listed = await list_offsets(client, topic.name, dict.fromkeys(partitions, MAX_TIMESTAMP))
        newest[topic.name] = max((each.timestamp_ms for each in listed.values()), default=-1)
    return judge_clocks(newest, now_ms)


def judge_clocks(newest_ms: dict[str, int], now_ms: int) -> Finding:
    """Whether some topic's newest record is from the future."""
    ahead = {name: at_ms - now_ms for name, at_ms in newest_ms.items() if at_ms > now_ms}
    worst = max(ahead, key=lambda name: ahead[name], default=None)
    if worst is None or ahead[worst] <= AHEAD_MS_MAX:
        return Finding(State.GOOD, "clocks", "no record is from the future")
    return Finding(
        State.WARNING,
        "clocks",
        f"{worst} has a record from {ahead[worst] / 1000:,.0f} s in the future",
        "set the clocks of this machine, the brokers and the producers (NTP)",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
