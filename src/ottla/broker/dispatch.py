"""From a frame to the handler of its API and back to a reply. The one place where an exception
becomes an error code on the wire.

Invariants:
1. A handler runs on the caller's stack until it first waits, so requests of one connection take
   effect in the order in which they came.
2. Bytes that are not a request of a known API and version close the connection: there is no
   telling what an answer would have to look like. ApiVersions alone answers any version.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final, Protocol

from ottla.broker.request import Handler, Outcome, Parked, RequestContext, Running, settled
from ottla.errors import (
    ErrorCode,
    FrameTooLarge,
    OttlaError,
    ProtocolError,
    UnknownApi,
    UnsupportedVersion,
)
from ottla.net.promise import Promise
from ottla.net.server_connection import Peer, Promised
from ottla.protocol.api import APIS, Api, ApiKey, api_of
from ottla.protocol.codec import Decoder, decoder
from ottla.protocol.frames import EncodedResponse, decode_request_header, encode_response
from ottla.protocol.message import Message

REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024
"""The limit for requests that carry no records: what they say is small, and decoding multiplies."""

log = logging.getLogger(__name__)


class Interception(Protocol):
    """What is done to a request before its handler sees it; tests use it to make trouble."""

    async def before(self, api: ApiKey, context: RequestContext) -> ErrorCode | None:
        """Waits, raises ProtocolError to cut the client off, or says the code to refuse with."""
        ...

    def concerns(self, api: ApiKey) -> bool:
        """Whether the next request of this API is to be intercepted."""
        ...


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


class Dispatch:
    """Answers frames."""

    def __init__(
        self,
        handlers: Mapping[ApiKey, Handler],
        frame_bytes_max: int,
        interception: Interception | None = None,
    ) -> None:
        self._handlers = handlers
        self._frame_bytes_max = frame_bytes_max
        self._routes: dict[int, Route] = {}
        self._interception = interception

    def __call__(self, frame: memoryview, peer: Peer) -> EncodedResponse | Promised | None:
        header, body = decode_request_header(frame)
        version, correlation_id = header.api_version, header.correlation_id
        route = self._routes.get(header.api_key << 16 | version)
        if route is None:
            route = self._route(header.api_key, version)
            if route is None:
                return self._answer_unknown_api_versions(correlation_id)
        if len(frame) > route.frame_bytes_max:
            raise FrameTooLarge(len(frame), route.frame_bytes_max)
        request = route.decode(frame, body)
        context = RequestContext(version, header.client_id, peer)
        interception = self._interception
        if interception is not None and interception.concerns(route.key):
            # It may wait, and by then the frame's buffer is another's.
            request = route.decode(memoryview(bytearray(frame)), body)
            outcome: Outcome = self._intercepted(route, request, context, interception)
        else:
            try:
                outcome = route.handler.handle(request, context)
            except Exception as error:
                return self.refused(route, correlation_id, request, error)
        if outcome is None:
            return None
        if isinstance(outcome, Message):
            return route.encode(correlation_id, outcome)
        if isinstance(outcome, Parked):
            waiting = _Waiting(self, route, correlation_id, request, outcome.running)
            waiting.go_on(None)
            return waiting
        return self._run(route, correlation_id, request, outcome)

    def _run(
        self, route: Route, correlation_id: int, request: Message, running: Running
    ) -> EncodedResponse | asyncio.Future[EncodedResponse | None] | None:
        """Takes a coroutine to its first wait, and where it has one, lets it go on in a task."""
        try:
            awaited = running.send(None)
        except StopIteration as finished:
            response = finished.value
            return None if response is None else route.encode(correlation_id, response)
        except Exception as error:
            return self.refused(route, correlation_id, request, error)
        return asyncio.get_running_loop().create_task(
            self._finish(route, correlation_id, request, _resumed(running, awaited))
        )

    async def _finish(
        self, route: Route, correlation_id: int, request: Message, running: Any
    ) -> EncodedResponse | None:
        try:
            response = await running
        except Exception as error:
            return self.refused(route, correlation_id, request, error)
        return None if response is None else route.encode(correlation_id, response)

    async def _intercepted(
        self, route: Route, request: Message, context: RequestContext, interception: Interception
    ) -> Message | None:
        code = await interception.before(route.key, context)
        if code is not None:
            return route.handler.refuse(request, code)
        return await settled(route.handler.handle(request, context))

    def refused(
        self, route: Route, correlation_id: int, request: Message, error: Exception
    ) -> EncodedResponse:
        if isinstance(error, ProtocolError):
            raise error
        if isinstance(error, OttlaError):
            code = error.code
        else:
            log.error("answering %s v%d failed", route.key.name, route.version, exc_info=error)
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        return route.encode(correlation_id, route.handler.refuse(request, code))

    def _route(self, api_key: int, version: int) -> Route | None:
        """Compiles a route; None for a version of ApiVersions that nobody knows."""
        api = api_of(api_key)
        handler = self._handlers.get(api.key)
        if handler is None:
            raise UnknownApi(api_key)
        if version not in api.versions:
            if api.key is ApiKey.API_VERSIONS:
                return None
            raise UnsupportedVersion(api.name, version)
        carries_records = api.key is ApiKey.PRODUCE
        frame_bytes_max = self._frame_bytes_max if carries_records else REQUEST_BYTES_MAX
        route = Route(api, version, handler, frame_bytes_max)
        self._routes[api_key << 16 | version] = route
        return route

    def _answer_unknown_api_versions(self, correlation_id: int) -> EncodedResponse:
        handler = self._handlers[ApiKey.API_VERSIONS]
        api = APIS[ApiKey.API_VERSIONS]
        response = handler.refuse(api.request(), ErrorCode.UNSUPPORTED_VERSION)
        return encode_response(api, 0, correlation_id, response)


class _Waiting(Promise):
    """The reply to a request that waits for futures, each of which makes it go on when done."""

    __slots__ = ("_awaited", "_correlation_id", "_dispatch", "_request", "_route", "_running")

    def __init__(
        self,
        dispatch: Dispatch,
        route: Route,
        correlation_id: int,
        request: Message,
        running: Running,
    ) -> None:
        super().__init__()
        self._dispatch = dispatch
        self._route = route
        self._correlation_id = correlation_id
        self._request = request
        self._running = running
        self._awaited: Any = None

    def go_on(self, _awaited: object) -> None:
        """What was waited for has come: runs to the next wait, or to the end."""
        if self.done():
            return
        try:
            awaited: Any = self._running.send(None)
        except StopIteration as finished:
            response = finished.value
            route, correlation_id = self._route, self._correlation_id
            self.settle(None if response is None else route.encode(correlation_id, response))
        except asyncio.CancelledError:
            self.fail(ProtocolError("what the request waited for was given up"))
        except Exception as error:
            self._refuse(error)
        else:
            self._awaited = awaited
            awaited._asyncio_future_blocking = False  # as a task says that it has seen it
            awaited.add_done_callback(self.go_on)

    def given_up(self) -> None:
        self._awaited.cancel()
        try:
            self._running.throw(asyncio.CancelledError())
        except (asyncio.CancelledError, StopIteration):
            return
        self._running.close()

    def _refuse(self, error: Exception) -> None:
        try:
            reply = self._dispatch.refused(self._route, self._correlation_id, self._request, error)
        except ProtocolError as fatal:
            self.fail(fatal)
        else:
            self.settle(reply)


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
