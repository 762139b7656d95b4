"""A request on its way to its reply. The one place where an exception becomes an error code on the
wire."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from ottla.broker.request import Handler, Running
from ottla.errors import ErrorCode, OttlaError, ProtocolError
from ottla.net.promise import Promise
from ottla.protocol.api import Api
from ottla.protocol.codec import Decoder, decoder
from ottla.protocol.frames import EncodedResponse, encode_response
from ottla.protocol.message import Message

log = logging.getLogger(__name__)


class Route:
    """All that is known of one version of one API."""

    __slots__ = ("decode", "encode", "frame_bytes_max", "handler", "key", "version")

    def __init__(self, api: Api, version: int, handler: Handler, frame_bytes_max: int) -> None:
        self.key = api.key
        self.version = version
        self.frame_bytes_max = frame_bytes_max
        self.decode: Decoder[Message] = decoder(api.request, version)
        self.encode: Callable[[int, Message], EncodedResponse] = partial(
            encode_response, api, version
        )
        self.handler = handler


class Exchange:
    """One request, and how its answer is written."""

    __slots__ = ("_correlation_id", "_request", "_route")

    def __init__(self, route: Route, correlation_id: int, request: Message) -> None:
        self._route = route
        self._correlation_id = correlation_id
        self._request = request

    def answered(self, response: Message | None) -> EncodedResponse | None:
        """The reply with a handler's answer; none where it gave none."""
        return None if response is None else self._route.encode(self._correlation_id, response)

    def refused(self, error: Exception) -> EncodedResponse:
        """The reply to a request that failed; raises what the connection must be closed for."""
        if isinstance(error, ProtocolError):
            raise error
        route = self._route
        if isinstance(error, OttlaError):
            code = error.code
        else:
            log.error("answering %s v%d failed", route.key.name, route.version, exc_info=error)
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        return route.encode(self._correlation_id, route.handler.refuse(self._request, code))

    def run(
        self, running: Running
    ) -> EncodedResponse | asyncio.Future[EncodedResponse | None] | None:
        """Takes a coroutine to its first wait, and where it has one, lets it go on in a task."""
        try:
            awaited = running.send(None)
        except StopIteration as finished:
            return self.answered(finished.value)
        except Exception as error:
            return self.refused(error)
        return asyncio.get_running_loop().create_task(self._finish(_resumed(running, awaited)))

    async def _finish(self, running: Any) -> EncodedResponse | None:
        try:
            response = await running
        except Exception as error:
            return self.refused(error)
        return self.answered(response)


class ParkedExchange:
    """An exchange that waits for futures, each of which makes it go on when done."""

    __slots__ = ("_awaited", "_exchange", "_running", "reply")

    def __init__(self, exchange: Exchange, running: Running) -> None:
        self.reply = Promise(self._given_up)
        self._exchange = exchange
        self._running = running
        self._awaited: Any = None
        self._go_on(None)

    def _go_on(self, _awaited: object) -> None:
        """What was waited for has come: runs to the next wait, or to the end."""
        if self.reply.done():
            return
        try:
            awaited: Any = self._running.send(None)
        except StopIteration as finished:
            self._settle_by(self._exchange.answered, finished.value)
        except asyncio.CancelledError:
            self.reply.fail(ProtocolError("what the request waited for was given up"))
        except Exception as error:
            self._settle_by(self._exchange.refused, error)
        else:
            self._awaited = awaited
            awaited._asyncio_future_blocking = False  # as a task says that it has seen it
            awaited.add_done_callback(self._go_on)

    def _settle_by(self, write: Callable[[Any], EncodedResponse | None], outcome: object) -> None:
        try:
            reply = write(outcome)
        except Exception as error:
            if not isinstance(error, ProtocolError):
                log.error("a reply cannot be written", exc_info=error)
            self.reply.fail(error)
        else:
            self.reply.settle(reply)

    def _given_up(self) -> None:
        self._awaited.cancel()
        try:
            self._running.throw(asyncio.CancelledError())
        except (asyncio.CancelledError, StopIteration):
            return
        self._running.close()


@types.coroutine
def _resumed(running: Running, awaited: Any) -> Generator[Any, Any, Message | None]:
    """Goes on with a coroutine that was begun outside of any task and now waits for `awaited`."""
    try:
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                awaited = running.throw(error)
            else:
                awaited = running.send(sent)
    except StopIteration as finished:
        response: Message | None = finished.value
        return response
