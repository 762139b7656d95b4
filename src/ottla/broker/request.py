"""What a handler is given beside the request, and what a handler is."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from ottla.errors import ErrorCode
from ottla.net.server_connection import Peer
from ottla.protocol.message import Message


class RequestContext(msgspec.Struct):
    """Who asks, and in which version of the API."""

    version: int
    client_id: str | None
    peer: Peer


class Handler(Protocol):
    """Answers the requests of one API. Its fields are all it may touch.

    `handle` runs to its first await before the next request of the connection is looked at, and
    a request's record bytes may be read only until then. None means that no answer is sent.
    """

    async def handle(self, request: Any, context: RequestContext) -> Message | None: ...

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        """The answer to the whole request when it cannot be handled."""
        ...
