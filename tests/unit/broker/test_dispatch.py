"""From a frame to a reply: what is answered, with which code, and what closes the connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.broker.dispatch import REQUEST_BYTES_MAX, Dispatch
from ottla.broker.request import Parked, RequestContext
from ottla.errors import (
    ErrorCode,
    FrameTooLarge,
    ProtocolError,
    StorageFailed,
    UnknownApi,
    UnsupportedVersion,
)
from ottla.net.promise import Promise
from ottla.net.server_connection import Peer
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.frames import (
    EncodedResponse,
    decode_response,
    decode_response_header,
    encode_request,
)
from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from unit.net.running import run, turns

PEER = Peer("here", 1)
VERSION = 4
HEARTBEAT = APIS[ApiKey.HEARTBEAT]


class Scripted:
    """A handler that does what the test says."""

    def __init__(self, act: Callable[[Any], Awaitable[Message | None]], refusal: type) -> None:
        self._act = act
        self._refusal = refusal
        self.seen: list[tuple[Any, RequestContext]] = []

    async def handle(self, request: Any, context: RequestContext) -> Message | None:
        self.seen.append((request, context))
        return await self._act(request)

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        del request
        return self._refusal(error_code=code)  # type: ignore[no-any-return]


def a_dispatch(act: Callable[[Any], Awaitable[Message | None]], **more: Any) -> Dispatch:
    return Dispatch(
        {
            ApiKey.HEARTBEAT: Scripted(act, HeartbeatResponse),
            ApiKey.API_VERSIONS: Scripted(act, ApiVersionsResponse),
        },
        1 << 20,
        **more,
    )


def a_frame(correlation_id: int = 9, *, group: str = "group") -> memoryview:
    request = HeartbeatRequest(group_id=group, generation_id=3, member_id="me")
    return memoryview(
        bytearray(encode_request(HEARTBEAT, VERSION, correlation_id, "client", request))
    )[4:]


def read(reply: EncodedResponse | None, correlation_id: int = 9) -> int:
    """The error code of a heartbeat's reply."""
    assert reply is not None
    frame = memoryview(reply.data)[4:]
    found, position = decode_response_header(frame, HEARTBEAT, VERSION)
    assert found == correlation_id
    response = decode_response(HEARTBEAT, VERSION, frame, position)
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


async def fine(_request: Any) -> Message:
    return HeartbeatResponse()


def raising(error: Exception, *, later: bool) -> Callable[[Any], Awaitable[Message]]:
    async def act(_request: Any) -> Message:
        if later:
            await asyncio.sleep(0)
        raise error

    return act


async def reply_of(dispatch: Dispatch, frame: memoryview) -> EncodedResponse | None:
    reply = dispatch(frame, PEER)
    return await reply if isinstance(reply, asyncio.Future) else reply


def test_a_handler_that_need_not_wait_is_answered_at_once() -> None:
    async def scenario() -> None:
        reply = a_dispatch(fine)(a_frame(), PEER)
        assert isinstance(reply, EncodedResponse)
        assert read(reply) == 0

    run(scenario())


def test_a_handler_runs_to_its_first_wait_before_the_next_request_is_looked_at() -> None:
    async def scenario() -> None:
        order: list[str] = []
        go_on = asyncio.Event()

        async def act(request: HeartbeatRequest) -> Message:
            order.append(f"begin {request.group_id}")
            await go_on.wait()
            order.append(f"end {request.group_id}")
            return HeartbeatResponse()

        dispatch = a_dispatch(act)
        replies = [dispatch(a_frame(group=name), PEER) for name in ("a", "b")]
        assert order == ["begin a", "begin b"]
        go_on.set()
        for reply in replies:
            assert isinstance(reply, asyncio.Future)
            assert read(await reply) == 0
        assert order[2:] == ["end a", "end b"]

    run(scenario())


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageFailed("the disk"), ErrorCode.KAFKA_STORAGE_ERROR),
        (ZeroDivisionError("a mistake of ours"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_exception_becomes_a_code(later: bool, error: Exception, code: ErrorCode) -> None:
    async def scenario() -> None:
        assert read(await reply_of(a_dispatch(raising(error, later=later)), a_frame())) == code

    run(scenario())


@pytest.mark.parametrize("later", [False, True])
def test_a_protocol_error_of_a_handler_reaches_the_connection(later: bool) -> None:
    async def scenario() -> None:
        dispatch = a_dispatch(raising(ProtocolError("cut off"), later=later))
        with pytest.raises(ProtocolError):
            await reply_of(dispatch, a_frame())

    run(scenario())


@pytest.mark.parametrize("later", [False, True])
def test_no_answer_is_no_reply(later: bool) -> None:
    async def scenario() -> None:
        async def act(_request: Any) -> None:
            if later:
                await asyncio.sleep(0)

        assert await reply_of(a_dispatch(act), a_frame()) is None

    run(scenario())


def test_a_request_taken_back_is_cancelled_in_its_handler() -> None:
    async def scenario() -> None:
        ended: list[str] = []

        async def act(_request: Any) -> Message:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            raise AssertionError

        reply = a_dispatch(act)(a_frame(), PEER)
        assert isinstance(reply, asyncio.Future)
        await turns()
        reply.cancel()
        await turns()
        assert reply.cancelled()
        assert ended == ["cancelled"]

    run(scenario())


def test_a_handler_may_do_something_about_being_cancelled() -> None:
    async def scenario() -> None:
        async def act(_request: Any) -> Message:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
            return HeartbeatResponse(error_code=27)

        reply = a_dispatch(act)(a_frame(), PEER)
        assert isinstance(reply, asyncio.Future)
        await turns()
        reply.cancel()
        assert read(await reply) == 27

    run(scenario())


def header(api_key: int, version: int) -> memoryview:
    data = api_key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    return memoryview(bytearray(data + (9).to_bytes(4, "big") + b"\xff\xff" + bytes(20)))


@pytest.mark.parametrize("api_key", [-1, 999, int(ApiKey.PRODUCE)])
def test_an_api_nobody_handles_closes_the_connection(api_key: int) -> None:
    with pytest.raises(UnknownApi):
        a_dispatch(fine)(header(api_key, 0), PEER)


@pytest.mark.parametrize("version", [-1, 5, 32_767])
def test_a_version_nobody_knows_closes_the_connection(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        a_dispatch(fine)(header(ApiKey.HEARTBEAT, version), PEER)


@pytest.mark.parametrize("version", [-1, 99, 32_767])
def test_api_versions_answers_any_version_in_its_first(version: int) -> None:
    reply = a_dispatch(fine)(header(ApiKey.API_VERSIONS, version), PEER)
    assert isinstance(reply, EncodedResponse)
    frame = memoryview(reply.data)[4:]
    api = APIS[ApiKey.API_VERSIONS]
    found, position = decode_response_header(frame, api, 0)
    assert found == 9
    response = decode_response(api, 0, frame, position)
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_body_that_does_not_decode_closes_the_connection() -> None:
    with pytest.raises(ProtocolError):
        a_dispatch(fine)(a_frame()[:-3], PEER)


def test_a_request_without_records_may_not_be_as_large_as_one_with() -> None:
    large = memoryview(bytearray(REQUEST_BYTES_MAX + 1))
    large[: len(a_frame())] = a_frame()
    with pytest.raises(FrameTooLarge):
        a_dispatch(fine)(large, PEER)


# --- interception ---


class Trouble:
    """Intercepts the APIs it was told to."""

    def __init__(self, api: ApiKey, outcome: ErrorCode | Exception | None) -> None:
        self._api = api
        self._outcome = outcome
        self.may_go_on = asyncio.Event()

    def concerns(self, api: ApiKey) -> bool:
        return api is self._api

    async def before(self, api: ApiKey, context: RequestContext) -> ErrorCode | None:
        del api, context
        await self.may_go_on.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def test_an_intercepted_request_is_refused_without_its_handler() -> None:
    async def scenario() -> None:
        trouble = Trouble(ApiKey.HEARTBEAT, ErrorCode.NOT_COORDINATOR)
        dispatch = a_dispatch(raising(AssertionError(), later=False), interception=trouble)
        trouble.may_go_on.set()
        assert read(await reply_of(dispatch, a_frame())) == ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_an_intercepted_request_survives_the_reuse_of_its_buffer() -> None:
    async def scenario() -> None:
        groups: list[str] = []

        async def act(request: HeartbeatRequest) -> Message:
            groups.append(request.group_id)
            return HeartbeatResponse()

        trouble = Trouble(ApiKey.HEARTBEAT, None)
        frame = a_frame(group="kept")
        reply = a_dispatch(act, interception=trouble)(frame, PEER)
        frame[:] = bytes(len(frame))
        trouble.may_go_on.set()
        assert isinstance(reply, asyncio.Future)
        assert read(await reply) == 0
        assert groups == ["kept"]

    run(scenario())


def test_an_interception_can_cut_the_client_off_and_leaves_other_apis_alone() -> None:
    async def scenario() -> None:
        trouble = Trouble(ApiKey.HEARTBEAT, ProtocolError("dropped"))
        trouble.may_go_on.set()
        dispatch = a_dispatch(fine, interception=trouble)
        with pytest.raises(ProtocolError):
            await reply_of(dispatch, a_frame())
        other = Trouble(ApiKey.FETCH, ErrorCode.NOT_COORDINATOR)
        assert read(await reply_of(a_dispatch(fine, interception=other), a_frame())) == 0

    run(scenario())


class Parking:
    """A handler whose answers wait for a future, and which notes how each wait ended."""

    def __init__(self) -> None:
        self.waits: list[asyncio.Future[int]] = []
        self.ends: list[object] = []

    def handle(self, request: Any, context: RequestContext) -> Parked:
        return Parked(self._wait())

    async def _wait(self) -> Message | None:
        try:
            codes = 0
            for _ in range(2):
                self.waits.append(asyncio.get_running_loop().create_future())
                codes += await self.waits[-1]
        except BaseException as error:
            self.ends.append(type(error))
            raise
        return HeartbeatResponse(error_code=codes)

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return HeartbeatResponse(error_code=code)


def parked() -> tuple[Parking, Promise]:
    handler = Parking()
    reply = Dispatch({ApiKey.HEARTBEAT: handler}, 1 << 20)(a_frame(), PEER)
    assert isinstance(reply, Promise), "no task was made"
    return handler, reply


def test_a_parked_request_goes_on_with_each_future_and_tells_its_connection_once() -> None:
    async def scenario() -> None:
        handler, promise = parked()
        told: list[Promise] = []
        promise.add_done_callback(told.append)
        for _ in range(2):
            assert not promise.done()
            handler.waits[-1].set_result(11)
            await turns(1)
        assert told == [promise]
        assert promise.exception() is None
        assert read(promise.result()) == 22

    run(scenario())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageFailed("no"), ErrorCode.KAFKA_STORAGE_ERROR),
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_parked_request_that_fails_is_refused(error: Exception, code: ErrorCode) -> None:
    async def scenario() -> None:
        handler, promise = parked()
        handler.waits[-1].set_exception(error)
        await turns(1)
        assert read(promise.result()) == code

    run(scenario())


@pytest.mark.parametrize("ending", ["a protocol error", "the wait is cancelled", "no reply"])
def test_a_parked_request_that_cannot_be_answered_closes_the_connection(ending: str) -> None:
    async def scenario() -> None:
        handler, promise = parked()
        if ending == "a protocol error":
            handler.waits[-1].set_exception(ProtocolError("enough"))
        elif ending == "the wait is cancelled":
            handler.waits[-1].cancel()
        else:
            for _ in range(2):
                handler.waits[-1].set_result(1 << 40)  # No error code is that large.
                await turns(1)
        await turns(1)
        assert promise.done()
        assert promise.exception() is not None

    run(scenario())


def test_who_parked_a_request_hears_that_its_client_is_gone() -> None:
    async def scenario() -> None:
        handler, promise = parked()
        told: list[Promise] = []
        promise.add_done_callback(told.append)
        assert promise.cancel()
        assert not promise.cancel(), "it is over"
        assert handler.ends == [asyncio.CancelledError]
        assert handler.waits[-1].cancelled()
        await turns(2)
        assert not told
        assert promise.cancelled()

    run(scenario())


def test_who_asks_for_what_is_logged_for_those_who_want_to_see_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        dispatch = a_dispatch(fine)
        for level in (logging.INFO, logging.DEBUG):
            caplog.set_level(level, "ottla.requests")
            await reply_of(dispatch, a_frame(group="secret"))

    run(scenario())
    (told,) = caplog.messages
    assert (
        told
        == f"HEARTBEAT v{VERSION} from 'client' at here:1, {len(a_frame(group='secret'))} bytes"
    )
