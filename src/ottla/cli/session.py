"""Runs one command's work with a client that is closed afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from ottla import __version__
from ottla.cli.connection_options import bootstrap, timeout_s
from ottla.clients.address import parse_addresses
from ottla.clients.broker_connection import ConnectionOptions
from ottla.clients.client import Client, ClientOptions
from ottla.clients.retry import RetryPolicy

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
        client_id="ottla-cli",
        software_version=__version__,
        connect_timeout_s=min(seconds, 5.0),
        request_timeout_s=seconds,
    )
    return ClientOptions(connection, RetryPolicy(attempts_max=100, total_s=seconds))
