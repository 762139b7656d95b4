"""The clients of one command: for its questions, for what it writes and for what it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from ottla import __version__, aio
from ottla.cli.connection_options import bootstrap, timeout_s
from ottla.clients.address import parse_addresses
from ottla.clients.broker_connection import ConnectionOptions
from ottla.clients.client import Client, ClientOptions
from ottla.clients.retry import RetryPolicy
from ottla.settings.declare import INT_MAX

CLIENT_ID: Final = "ottla-cli"
CONNECT_SECONDS_MAX: Final = 5.0
FOLLOW_RETRIES: Final = RetryPolicy(attempts_max=600, longest_wait_s=2.0, total_s=1200.0)
"""Somebody who watches wants to see it go on after a broker's restart."""

T = TypeVar("T")


def with_client(work: Callable[[Client], Awaitable[T]], *, retries: RetryPolicy | None = None) -> T:
    """Connects to the cluster of the command line and does the work."""
    addresses = parse_addresses([bootstrap()])
    options = client_options(timeout_s())
    if retries is not None:
        options = replace(options, retries=retries)

    async def session() -> T:
        async with Client(addresses, options) as client:
            return await work(client)

    return asyncio.run(session())


def client_options(seconds: float) -> ClientOptions:
    """How the command line's clients behave: brokers have so many seconds to answer."""
    connection = ConnectionOptions(
        client_id=CLIENT_ID,
        software_version=__version__,
        connect_timeout_s=min(seconds, CONNECT_SECONDS_MAX),
        request_timeout_s=seconds,
    )
    return ClientOptions(connection, RetryPolicy(attempts_max=100, total_s=seconds))


def producer_at(addresses: str, seconds: float, **settings: object) -> aio.Producer:
    """A producer for the cluster there; a record that nobody took for so long is given up."""
    milliseconds = _milliseconds(seconds)
    return aio.Producer(
        addresses,
        client_id=CLIENT_ID,
        request_timeout_ms=milliseconds,
        socket_connection_setup_timeout_ms=_milliseconds(min(seconds, CONNECT_SECONDS_MAX)),
        delivery_timeout_ms=milliseconds,
        max_block_ms=milliseconds,
        config=settings,
    )


def consumer_at(addresses: str, seconds: float, **settings: object) -> aio.Consumer:
    """A consumer without a group for the cluster there."""
    milliseconds = _milliseconds(seconds)
    return aio.Consumer(
        bootstrap_servers=addresses,
        client_id=CLIENT_ID,
        request_timeout_ms=milliseconds,
        socket_connection_setup_timeout_ms=_milliseconds(min(seconds, CONNECT_SECONDS_MAX)),
        default_api_timeout_ms=milliseconds,
        auto_offset_reset="none",
        allow_auto_create_topics=False,
        config=settings,
    )


def _milliseconds(seconds: float) -> int:
    return min(max(1, int(seconds * 1000)), INT_MAX)
