"""From a frame to the handler of its API; exchange.py takes the answer back.

Invariants:
1. A handler runs on the caller's stack until it first waits, so requests of one connection take
   effect in the order in which they came.
2. Bytes that are not a request of a known API and version close the connection: there is no
   telling what an answer would have to look like. ApiVersions alone answers any version.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import DEBUG
from typing import Final, Protocol

from ottla.broker.exchange import Exchange, ParkedExchange, Route
from ottla.broker.request import Handler, Outcome, Parked, RequestContext, settled
from ottla.broker.request_log import request_log, tell_request
from ottla.errors import ErrorCode, FrameTooLarge, UnknownApi, UnsupportedVersion
from ottla.net.server_connection import Peer, Promised
from ottla.protocol.api import APIS, ApiKey, api_of
from ottla.protocol.frames import EncodedResponse, decode_request_header, encode_response
from ottla.protocol.message import Message

REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024
"""The limit for requests that carry no records: what they say is small, and decoding multiplies."""


class Interception(Protocol):
    """What is done to a request before its handler sees it; tests use it to make trouble."""

    async def before(self, api: ApiKey, context: RequestContext) -> ErrorCode | None:
        """Waits, raises ProtocolError to cut the client off, or says the code to refuse with."""
        ...

    def concerns(self, api: ApiKey) -> bool:
        """Whether the next request of this API is to be intercepted."""
        ...


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
        if request_log.isEnabledFor(DEBUG):
            tell_request(route.key, context, len(frame))
        interception = self._interception
        if interception is not None and interception.concerns(route.key):
            # It may wait, and by then the frame's buffer is another's.
            request = route.decode(memoryview(bytearray(frame)), body)
            outcome: Outcome = self._intercepted(route, request, context, interception)
        else:
            try:
                outcome = route.handler.handle(request, context)
            except Exception as error:
                return Exchange(route, correlation_id, request).refused(error)
        if outcome is None:
            return None
        if isinstance(outcome, Message):
            return route.encode(correlation_id, outcome)
        exchange = Exchange(route, correlation_id, request)
        if isinstance(outcome, Parked):
            return ParkedExchange(exchange, outcome.running).reply
        return exchange.run(outcome)

    async def _intercepted(
        self, route: Route, request: Message, context: RequestContext, interception: Interception
    ) -> Message | None:
        code = await interception.before(route.key, context)
        if code is not None:
            return route.handler.refuse(request, code)
        return await settled(route.handler.handle(request, context))

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
