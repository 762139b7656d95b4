"""asyncio's event loop, with a shorter way for the connections of its servers."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any, Final, cast

from ottla.net.direct_selector import DirectSelector
from ottla.net.direct_transport import DirectTransport

HAS_DIRECT: Final = sys.platform == "linux"

log = logging.getLogger(__name__)


class DirectLoop(asyncio.SelectorEventLoop):
    """A loop as any other, except that connections may be served while it polls."""

    def __init__(self) -> None:
        self.direct = direct_selector(self)
        super().__init__(cast("Any", self.direct))


def direct_selector(loop: asyncio.AbstractEventLoop) -> DirectSelector | None:
    """What a loop is to poll with, and to have as its `direct`; None where there is no epoll."""

    def failed(error: Exception) -> None:
        loop.call_exception_handler({"message": "serving a descriptor failed", "exception": error})

    return DirectSelector(failed) if HAS_DIRECT else None


def served_directly(
    loop: asyncio.AbstractEventLoop, new_connection: Callable[[], asyncio.BufferedProtocol]
) -> Callable[[], asyncio.BaseProtocol]:
    """A server's factory of protocols, whose connections are served while the loop polls, if it
    can do that."""
    direct: DirectSelector | None = getattr(loop, "direct", None)
    if direct is None:
        return new_connection
    return lambda: _Arrival(loop, direct, new_connection())


class _Arrival(asyncio.Protocol):
    """Takes a connection over from asyncio, which has accepted it: the descriptor is doubled, and
    asyncio's own closed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        selector: DirectSelector,
        protocol: asyncio.BufferedProtocol,
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
