"""asyncio's event loop, with a shorter way for the connections of its servers."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any, cast

from ottla.net.direct_selector import DirectSelector
from ottla.net.direct_transport import DirectTransport

HAS_DIRECT = sys.platform == "linux"

log = logging.getLogger(__name__)


class DirectLoop(asyncio.SelectorEventLoop):
    """A loop as any other; where the system has no epoll, it is the usual one.

    Connections that come in by `create_server` to a `BufferedProtocol` are served while the loop
    polls. For the rest of asyncio nothing changes.
    """

    def __init__(self) -> None:
        self._direct = DirectSelector(self._failed) if HAS_DIRECT else None
        super().__init__(cast("Any", self._direct))

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], *args: Any, **options: Any
    ) -> asyncio.Server:
        direct = self._direct
        if direct is None or options.get("ssl"):
            return await super().create_server(protocol_factory, *args, **options)

        def arrival() -> asyncio.BaseProtocol:
            protocol = protocol_factory()
            if isinstance(protocol, asyncio.BufferedProtocol):
                return _Arrival(self, direct, protocol)
            return protocol

        return await super().create_server(arrival, *args, **options)

    def _failed(self, error: Exception) -> None:
        self.call_exception_handler({"message": "serving a descriptor failed", "exception": error})


class _Arrival(asyncio.Protocol):
    """Takes a connection over from asyncio, which has accepted it: the descriptor is doubled, and
    asyncio's own closed."""

    def __init__(
        self, loop: DirectLoop, selector: DirectSelector, protocol: asyncio.BufferedProtocol
    ) -> None:
        self._loop = loop
        self._selector = selector
        self._protocol = protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        accepted = transport.get_extra_info("socket")
        try:
            connected = socket.socket(fileno=accepted.dup().detach())
        except OSError as error:
            log.warning("refused a client: %s", error)  # There are no descriptors left.
            return
        finally:
            transport.abort()
        connected.setblocking(False)
        DirectTransport(self._loop, self._selector, connected, self._protocol).open()
