"""What a handler is given beside the request, and what a handler is."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from ottla.errors import ErrorCode
from ottla.net.server_connection import Peer
from ottla.protocol.message import Message

Running = Coroutine[Any, Any, Message | None]


class Parked:
    """A coroutine that waits for nothing but futures: it needs no task to go on in."""

    __slots__ = ("running",)

    def __init__(self, running: Running) -> None:
        self.running = running


Outcome = Message | None | Running | Parked
"""A handler's answer, or the coroutine that has it in the end. None means that none is sent."""


class RequestContext:
    """Who asks, and in which version of the API."""

    __slots__ = ("client_id", "peer", "version")

    def __init__(self, version: int, client_id: str | None, peer: Peer) -> None:
        self.version = version
        self.client_id = client_id
        self.peer = peer


class Handler(Protocol):
    """Answers the requests of one API. Its fields are all it may touch.

    `handle` runs to its first await before the next request of the connection is looked at, and
    a request's record bytes may be read only until then. Most handlers are `async def`; those of
    APIs that seldom wait return their answer itself, which spares a coroutine for each request.
    """

    def handle(self, request: Any, context: RequestContext) -> Outcome: ...

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        """The answer to the whole request when it cannot be handled."""
        ...


async def settled(outcome: Outcome) -> Message | None:
    """The answer, waited for where it takes a wait."""
    if outcome is None or isinstance(outcome, Message):
        return outcome
    return await (outcome.running if isinstance(outcome, Parked) else outcome)
