"""Frames: sizes, headers and bodies of requests and responses."""

from __future__ import annotations

import struct

import pytest

from ottla.errors import (
    BadLength,
    BadText,
    ProtocolError,
    Truncated,
    UnknownApi,
    UnsupportedVersion,
)
from ottla.model.file_region import FileRegion
from ottla.model.ids import Position
from ottla.protocol import frames
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.encoder_source import LENT_BYTES_MIN
from ottla.protocol.messages import headers
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

METADATA = APIS[ApiKey.METADATA]
PRODUCE = APIS[ApiKey.PRODUCE]
API_VERSIONS = APIS[ApiKey.API_VERSIONS]


class ADevice:
    """Something with a descriptor that nobody reads."""

    def fileno(self) -> int:
        return -1


def fields_of(header: frames.RequestHeader) -> tuple[int, int, int, str | None]:
    return header.api_key, header.api_version, header.correlation_id, header.client_id


def frame_of(data: bytes | bytearray) -> memoryview:
    """What follows the size, which must be right."""
    (size,) = struct.unpack_from(">i", data)
    assert size == len(data) - 4
    return memoryview(data)[4:]


@pytest.mark.parametrize("version", [0, 8, 9, 12])
@pytest.mark.parametrize("client_id", [None, "", "grün"])
def test_a_request_is_read_as_it_was_written(version: int, client_id: str | None) -> None:
    request = MetadataRequest(topics=[])
    frame = frame_of(frames.encode_request(METADATA, version, 77, client_id, request))
    header, position = frames.decode_request_header(frame)
    assert fields_of(header) == (ApiKey.METADATA, version, 77, client_id)
    assert frames.decode_request(header, frame, position) == request


@pytest.mark.parametrize("version", [3, 9, 13])
@pytest.mark.parametrize("size", [0, LENT_BYTES_MIN - 1, LENT_BYTES_MIN, 100_000])
def test_long_records_of_a_request_are_lent_and_the_frame_is_the_same(
    version: int, size: int
) -> None:
    records = [memoryview(bytes([number]) * (size + number)) for number in range(3)]
    request = ProduceRequest(
        topic_data=[
            TopicProduceData(
                name="t",
                partition_data=[
                    PartitionProduceData(index=index, records=view)
                    for index, view in enumerate(records)
                ],
            )
        ]
    )
    parts = frames.encode_request_parts(PRODUCE, version, 77, "me", request)
    lent = [view for view in records if any(part is view for part in parts)]
    assert lent == [view for view in records if len(view) >= LENT_BYTES_MIN]
    frame = frame_of(b"".join(parts))
    header, position = frames.decode_request_header(frame)
    decoded = frames.decode_request(header, frame, position)
    assert isinstance(decoded, ProduceRequest)
    assert [each.records for each in decoded.topic_data[0].partition_data] == records
    assert encode(request, version) == bytes(frame[position:])


@pytest.mark.parametrize("version", [8, 9])
def test_a_request_header_has_the_bytes_of_its_schema(version: int) -> None:
    frame = frames.encode_request(METADATA, version, 77, "me", MetadataRequest(topics=[]))
    expected = encode(
        headers.RequestHeader(ApiKey.METADATA, version, 77, "me"),
        METADATA.request_header_version(version),
    )
    assert frame[4:].startswith(expected)
    assert frame[4 + len(expected) :] == encode(MetadataRequest(topics=[]), version)


def test_tags_in_a_request_header_are_passed_over() -> None:
    head = struct.pack(">hhih", ApiKey.METADATA, 9, 5, 2) + b"me" + b"\x02\x07\x01x\x08\x00"
    frame = memoryview(head + encode(MetadataRequest(topics=[]), 9))
    header, position = frames.decode_request_header(frame)
    assert position == len(head)
    assert frames.decode_request(header, frame, position) == MetadataRequest(topics=[])


@pytest.mark.parametrize("version", [0, 9])
def test_a_response_is_read_as_it_was_written(version: int) -> None:
    response = MetadataResponse(controller_id=-1)
    encoded = frames.encode_response(METADATA, version, 77, response)
    frame = frame_of(encoded.data)
    assert frames.peek_correlation_id(frame) == 77
    correlation_id, position = frames.decode_response_header(frame, METADATA, version)
    assert correlation_id == 77
    assert frames.decode_response(METADATA, version, frame, position) == response


def test_api_versions_is_always_answered_with_the_oldest_header() -> None:
    encoded = frames.encode_response(API_VERSIONS, 3, 77, ApiVersionsResponse())
    assert encoded.data[4:] == struct.pack(">i", 77) + encode(ApiVersionsResponse(), 3)
    _, position = frames.decode_response_header(frame_of(encoded.data), API_VERSIONS, 3)
    assert position == 4


def test_the_size_of_a_response_counts_its_file_regions() -> None:
    region = FileRegion(ADevice(), Position(10), 1000)
    topic = FetchableTopicResponse("t", partitions=[PartitionData(0, records=region)])
    response = FetchResponse(responses=[topic])
    encoded = frames.encode_response(APIS[ApiKey.FETCH], 12, 1, response)
    (size,) = struct.unpack_from(">i", encoded.data)
    assert size + 4 == encoded.size_bytes == len(encoded.data) + 1000
    assert encoded.regions[0][1] is region


def test_an_unknown_api_or_version_still_has_a_readable_header() -> None:
    frame = memoryview(struct.pack(">hhih", 999, 3, 5, -1))
    header, position = frames.decode_request_header(frame)
    assert fields_of(header) == (999, 3, 5, None)
    with pytest.raises(UnknownApi):
        frames.decode_request(header, frame, position)

    newer = memoryview(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 6, 2) + b"me\x00what is this")
    header, position = frames.decode_request_header(newer)
    assert (header.correlation_id, header.client_id) == (6, "me")
    with pytest.raises(UnsupportedVersion):
        frames.decode_request(header, newer, position)


def test_a_request_header_cut_anywhere_is_refused() -> None:
    frame = frames.encode_request(API_VERSIONS, 3, 77, "me", ApiVersionsRequest())[4:]
    _, body = frames.decode_request_header(memoryview(frame))
    for end in range(body):
        with pytest.raises(ProtocolError):
            frames.decode_request_header(memoryview(frame[:end]))


def test_a_bad_client_id_is_refused() -> None:
    with pytest.raises(BadLength):
        frames.decode_request_header(memoryview(struct.pack(">hhih", 3, 0, 1, 100) + b"short"))
    with pytest.raises(BadText):
        frames.decode_request_header(memoryview(struct.pack(">hhih", 3, 0, 1, 2) + b"\xc3\x28"))


def test_a_response_header_cut_anywhere_is_refused() -> None:
    frame = frame_of(frames.encode_response(METADATA, 9, 77, MetadataResponse()).data)
    for end in range(5):
        with pytest.raises(Truncated):
            frames.decode_response_header(frame[:end], METADATA, 9)
