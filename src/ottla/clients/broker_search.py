"""Finds a broker that answers, among addresses of which any may be dead or, worse, hang.

They are tried in their order, each as soon as those before it have failed or take long: who waited
for one that hangs, before asking the next, would wait in vain for as long as a request may take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.clients.address import Address
from ottla.clients.broker_connection import BrokerConnection
from ottla.errors import OttlaError
from ottla.net.client_connection import ConnectionFailed

PATIENCE_S: Final = 1.0
"""After which the next address is tried as well."""

Connect = Callable[[Address], Coroutine[Any, Any, BrokerConnection]]


@dataclass(slots=True)
class BrokerSearch:
    """What came of the addresses tried."""

    found: BrokerConnection | None = None
    """One that has said which versions it offers."""
    silent: BrokerConnection | None = None
    """An old broker, or a proxy before one that is away: others may say more."""
    failed: list[tuple[Address, OttlaError]] = field(default_factory=list)

    def end(self, address: Address, attempt: asyncio.Task[BrokerConnection]) -> None:
        """Takes note of an attempt that is over."""
        try:
            connection = attempt.result()
        except ConnectionFailed as error:
            self.failed.append((address, error))
            return
        if not connection.versions.is_assumed:
            self.found = connection
        elif self.silent is None:
            self.silent = connection


async def search_broker(
    addresses: Iterable[Address], connect: Connect, *, patience_s: float = PATIENCE_S
) -> BrokerSearch:
    """Tries addresses until one is found, and gives up the attempts that are not needed then."""
    ahead = deque(addresses)
    running: dict[asyncio.Task[BrokerConnection], Address] = {}
    search = BrokerSearch()
    try:
        while search.found is None and (ahead or running):
            if ahead:
                address = ahead.popleft()
                running[asyncio.create_task(connect(address))] = address
            done, _ = await asyncio.wait(
                running,
                timeout=patience_s if ahead else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in [each for each in running if each in done]:
                search.end(running.pop(attempt), attempt)
    finally:
        for attempt in running:
            attempt.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return search
