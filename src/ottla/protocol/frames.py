"""Frames: the size, the header and the message, on both sides of a connection.

A frame is a four-byte size and as many bytes. Functions that read take a view of what follows the
size; functions that write put the size in front. Does not know where frames come from or go to, nor
which APIs are served.
"""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import Final

from ottla.errors import BadLength, BadText, ProtocolError, Truncated
from ottla.protocol.api import Api, api_of
from ottla.protocol.codec import Decoder, Encoder, Lent, Regions, decoder, encoder
from ottla.protocol.message import VERSION_MAX, Message
from ottla.protocol.wire import skip_tags

SIZE_BYTES: Final = 4
"""How many bytes say the size of a frame."""

_unpack_request_start = Struct(">hhih").unpack_from
_RESPONSE_START: Final = Struct(">i")
_SIZE: Final = Struct(">i")
_RESPONSE_HEAD: Final = Struct(">ii")
_FLEXIBLE_RESPONSE_HEAD: Final = Struct(">iix")
_REQUEST_HEAD: Final = Struct(">ihhih")


class RequestHeader:
    """Which API and version a request is of, and what to write on the response."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


class EncodedResponse:
    """A response ready to be sent: `data`, with each region's file bytes put in at its position."""

    __slots__ = ("data", "regions")

    def __init__(self, data: bytearray, regions: Regions) -> None:
        self.data = data
        self.regions = regions

    @property
    def size_bytes(self) -> int:
        """How many bytes go over the wire."""
        return len(self.data) + sum(len(region) for _, region in self.regions)


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Read a request's header; return it and the position where the body starts.

    An unknown API or version is no error here: the header alone tells the caller what to answer.
    """
    api_key: int
    api_version: int
    correlation_id: int
    length: int
    try:
        api_key, api_version, correlation_id, length = _unpack_request_start(frame)
        position = 10
        client_id = None
        if length >= 0:
            position += length
            if position > len(frame):
                raise BadLength("RequestHeader", "client_id", length)
            client_id = frame[10:position].tobytes().decode()
        if api_version >= _flexible_from(api_key):
            position = skip_tags(frame, position) if frame[position] else position + 1
    except (IndexError, error):
        raise Truncated("RequestHeader", len(frame)) from None
    except UnicodeDecodeError:
        raise BadText("RequestHeader", 10) from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def decode_request(header: RequestHeader, frame: memoryview, position: int) -> Message:
    """Read the request behind its header, or raise UnknownApi, UnsupportedVersion and others."""
    return _request_decoder(header.api_key, header.api_version)(frame, position)


def encode_response(
    api: Api, version: int, correlation_id: int, message: Message
) -> EncodedResponse:
    """A whole response frame."""
    flexible, encode = _response_encoder(api, version)
    head = _FLEXIBLE_RESPONSE_HEAD if flexible else _RESPONSE_HEAD
    data = bytearray(head.pack(0, correlation_id))
    regions: Regions = []
    encode(message, data, regions)
    size = len(data) - SIZE_BYTES
    for _, region in regions:
        size += region.size
    _SIZE.pack_into(data, 0, size)
    return EncodedResponse(data, regions)


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: Message
) -> bytearray:
    """A whole request frame, of a message that holds no file regions."""
    parts = encode_request_parts(api, version, correlation_id, client_id, message)
    return bytearray().join(parts)


def encode_request_parts(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: Message
) -> list[bytearray | memoryview]:
    """A request frame in parts. Long records are not copied: they must not change until sent."""
    is_flexible, encode = _request_encoder(api, version)
    text = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(text)
    data = bytearray(_REQUEST_HEAD.pack(0, api.key, version, correlation_id, length))
    data += text
    if is_flexible:
        data.append(0)
    lent: Lent = []
    encode(message, data, lent, True)
    if not lent:
        _SIZE.pack_into(data, 0, len(data) - SIZE_BYTES)
        return [data]
    _SIZE.pack_into(data, 0, len(data) + sum(len(view) for _, view in lent) - SIZE_BYTES)
    return _with_lent(memoryview(data), lent)


def _with_lent(data: memoryview, lent: Lent) -> list[bytearray | memoryview]:
    parts: list[bytearray | memoryview] = []
    start = 0
    for position, view in lent:
        parts += (data[start:position], view)
        start = position
    if start < len(data):
        parts.append(data[start:])
    return parts


def decode_response_header(frame: memoryview, api: Api, version: int) -> tuple[int, int]:
    """Read a response's header; return the correlation id and the position of the body."""
    correlation_id = peek_correlation_id(frame)
    position = _RESPONSE_START.size
    if _has_tags_in_response_header(api, version):
        try:
            position = skip_tags(frame, position)
        except IndexError:
            raise Truncated("ResponseHeader", len(frame)) from None
    return correlation_id, position


def peek_correlation_id(frame: memoryview) -> int:
    """The first field of a response: it says which request, and so which version, this answers."""
    try:
        (correlation_id,) = _RESPONSE_START.unpack_from(frame)
    except error:
        raise Truncated("ResponseHeader", len(frame)) from None
    return int(correlation_id)


def decode_response(api: Api, version: int, frame: memoryview, position: int) -> Message:
    """Read the response behind its header."""
    return decoder(api.response, version)(frame, position)


@cache
def _request_decoder(api_key: int, version: int) -> Decoder[Message]:
    return decoder(api_of(api_key).request, version)


@cache
def _request_encoder(api: Api, version: int) -> tuple[bool, Encoder]:
    return api.request_header_version(version) > 1, encoder(api.request, version)


@cache
def _response_encoder(api: Api, version: int) -> tuple[bool, Encoder]:
    return _has_tags_in_response_header(api, version), encoder(api.response, version)


@cache
def _has_tags_in_response_header(api: Api, version: int) -> bool:
    return api.response_header_version(version) > 0


@cache
def _flexible_from(api_key: int) -> int:
    """Bounded: an int16 has few enough values to remember the answer for every one."""
    try:
        return api_of(api_key).flexible_from
    except ProtocolError:
        return VERSION_MAX + 1
