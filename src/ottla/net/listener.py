"""Accepts clients on one address and keeps count of them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

import msgspec

from ottla.net.direct_loop import served_directly
from ottla.net.own_machine import send_unpaced
from ottla.net.pace import Pace
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.receive_buffers import ReceiveBuffers
from ottla.net.server_connection import Answer, ConnectionLimits, ServerConnection, Shared
from ottla.net.turns import Turns

BACKLOG: Final = 4096
SWEEP_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class Address(msgspec.Struct, frozen=True):
    """Where a broker listens or can be found."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ListenerLimits(msgspec.Struct, frozen=True):
    """How many clients there may be, and for how long a silent one is kept."""

    connection: ConnectionLimits
    connections_max: int
    connections_per_ip_max: int
    idle_ms_max: int
    receive_bytes_max: int


class Listener:
    """One listening address and its open connections."""

    def __init__(
        self,
        address: Address,
        answer: Answer,
        limits: ListenerLimits,
        turns: Turns | None = None,
    ) -> None:
        self.address = address
        self._limits = limits
        self._connections: dict[ServerConnection, float] = {}
        """In the order they came, with when each was last found to be active."""
        self._per_ip: Counter[str] = Counter()
        self._budget = ReceiveBudget(limits.receive_bytes_max)
        self._shared = Shared(answer, ReceiveBuffers(), self._budget, turns or Turns())
        self._paces: dict[ServerConnection, Pace] = {}
        """Of those that were in the middle of a request when last looked at."""
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_closed: asyncio.Future[None] | None = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def received_bytes(self) -> int:
        """What large requests on their way in hold of memory."""
        return self._budget.reserved_bytes

    async def open(self) -> Address:
        """Begins to accept; returns the address with the port it got."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            served_directly(loop, self._new_connection),
            self.address.host or None,
            self.address.port,
            backlog=BACKLOG,
        )
        for listening in self._server.sockets:
            send_unpaced(listening)
        port = self._server.sockets[0].getsockname()[1]
        self.address = Address(self.address.host, port)
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)
        return self.address

    def drain(self) -> None:
        """Accepts and reads no more; each client may still have the replies it is owed."""
        if self._server is not None:
            self._server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._all_closed = asyncio.get_running_loop().create_future()
        for connection in tuple(self._connections):
            connection.drain()

    async def close(self, grace_seconds: float) -> None:
        """Waits for clients to receive what they are owed after `drain`, then cuts the rest off."""
        if not self._connections:
            return
        assert self._all_closed is not None
        try:
            await asyncio.wait_for(asyncio.shield(self._all_closed), grace_seconds)
        except TimeoutError:
            for connection in tuple(self._connections):
                connection.abort()
            await self._all_closed

    def admit(self, connection: ServerConnection) -> bool:
        """Counts a new client in, unless there are too many already."""
        host = connection.peer.host
        if self._all_closed is not None:
            return False  # It was accepted before the listener shut, and heard of only now.
        if len(self._connections) >= self._limits.connections_max:
            log.warning("refused %s: all max.connections are in use", connection.peer)
            return False
        if self._per_ip[host] >= self._limits.connections_per_ip_max:
            log.warning("refused %s: all its max.connections.per.ip are in use", connection.peer)
            return False
        self._connections[connection] = asyncio.get_running_loop().time()
        self._per_ip[host] += 1
        return True

    def _new_connection(self) -> ServerConnection:
        return ServerConnection(self._shared, self._limits.connection, self)

    def forget(self, connection: ServerConnection) -> None:
        """Counts a client out that has gone, or was never let in."""
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._paces.pop(connection, None)
        host = connection.peer.host
        self._per_ip[host] -= 1
        if self._per_ip[host] <= 0:
            del self._per_ip[host]
        if not self._connections and self._all_closed is not None and not self._all_closed.done():
            self._all_closed.set_result(None)

    def _sweep(self) -> None:
        """Closes connections that neither sent nor were sent anything for too long, and those
        whose request comes too slowly."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        oldest = now - self._limits.idle_ms_max / 1000
        for connection, last_active in tuple(self._connections.items()):
            if connection.was_active:
                connection.was_active = False
                self._connections[connection] = now
            elif last_active < oldest and connection.is_idle:
                log.info("closing the idle connection of %s", connection.peer)
                connection.abort()
            if self._is_too_slow(connection, now):
                log.info(
                    "closing the connection of %s: its request comes too slowly (%d bytes"
                    " have come)",
                    connection.peer,
                    connection.request_bytes,
                )
                connection.abort()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)

    def _is_too_slow(self, connection: ServerConnection, now: float) -> bool:
        is_new = connection.has_finished_request
        connection.has_finished_request = False
        if not connection.is_mid_request:
            self._paces.pop(connection, None)
            return False
        pace = self._paces.get(connection)
        if pace is None or is_new:
            self._paces[connection] = Pace(now, connection.request_bytes)
            return False
        is_others_room = connection.holds_room and self._budget.is_waited_for
        return pace.is_too_slow(now, connection.request_bytes, are_others_waiting=is_others_room)
