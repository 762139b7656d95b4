"""Bytes that are not a message give a ProtocolError: nothing else, and no great work."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import ProtocolError, TooManyElements, UnsupportedVersion
from ottla.protocol.codec import decode, decoder, encode, encoder
from ottla.protocol.decoder_source import REQUEST_ELEMENTS_MAX as ELEMENTS_MAX
from ottla.protocol.frames import decode_request, decode_request_header
from ottla.protocol.message import Message
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.wire import write_uvarint
from properties.protocol.strategies import messages_with_version
from unit.protocol.every_message import every_version


def decodes_or_refuses(message_class: type[Message], data: bytes, version: int) -> bool:
    """Whether the bytes are a message; whatever else they are must be told by a ProtocolError."""
    try:
        decode(message_class, data, version)
    except ProtocolError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(messages_with_version())
def test_a_message_cut_anywhere_is_refused(pair: tuple[Message, int]) -> None:
    message, version = pair
    data = encode(message, version)
    for end in range(len(data)):
        assert not decodes_or_refuses(type(message), data[:end], version)


@settings(max_examples=100, deadline=None)
@given(messages_with_version(), st.binary(min_size=1, max_size=5))
def test_bytes_after_the_message_change_nothing(pair: tuple[Message, int], more: bytes) -> None:
    message, version = pair
    data = encode(message, version)
    assert decode(type(message), data + more, version) == decode(type(message), data, version)


@settings(max_examples=300, deadline=None)
@given(messages_with_version(), st.data())
def test_changed_bytes_are_a_message_or_refused(
    pair: tuple[Message, int], data: st.DataObject
) -> None:
    message, version = pair
    changed = bytearray(encode(message, version))
    for _ in range(data.draw(st.integers(1, 4)) if changed else 0):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(
            st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, changed[position] ^ 1])
        )
    decodes_or_refuses(type(message), bytes(changed), version)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(every_version()), st.binary(max_size=300))
def test_noise_is_a_message_or_refused(pair: tuple[type[Message], int], noise: bytes) -> None:
    decodes_or_refuses(pair[0], noise, pair[1])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 95), st.integers(-2, 20), st.binary(max_size=100))
def test_a_request_of_noise_is_a_message_or_refused(
    api_key: int, version: int, noise: bytes
) -> None:
    frame = memoryview(struct.pack(">hhi", api_key, version, 7) + noise)
    try:
        header, position = decode_request_header(frame)
        decode_request(header, frame, position)
    except ProtocolError:
        pass


@pytest.mark.parametrize("version", [-1, -32768, 99, 32767])
def test_a_version_nobody_has_is_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        decoder(ProduceRequest, version)
    with pytest.raises(UnsupportedVersion):
        encoder(ProduceRequest, version)


@pytest.mark.parametrize(
    ("message_class", "version", "data"),
    [
        (ProduceRequest, 0, struct.pack(">hii", 1, 1, 2**31 - 1)),
        (MetadataRequest, 0, struct.pack(">i", 2**31 - 1)),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f"),
        (FetchRequest, 17, bytes(17) + b"\xff\xff\xff\xff\x07"),
        (OffsetFetchRequest, 8, b"\xff\xff\xff\xff\x07"),
    ],
)
def test_a_count_that_cannot_be_true_costs_nothing(
    message_class: type[Message], version: int, data: bytes
) -> None:
    decoder(message_class, version)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(message_class, data, version)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_more_elements_than_the_limit_are_refused_even_if_they_are_there() -> None:
    fits = struct.pack(">i", ELEMENTS_MAX) + bytes(2) * ELEMENTS_MAX
    assert len(decode(MetadataRequest, fits, 0).topics or []) == ELEMENTS_MAX
    with pytest.raises(TooManyElements):
        decode(MetadataRequest, struct.pack(">i", ELEMENTS_MAX + 1) + fits[4:] + bytes(2), 0)


def test_the_limit_counts_the_elements_of_all_arrays_together() -> None:
    partitions = ELEMENTS_MAX // 3
    topic = struct.pack(">hi", 0, partitions) + bytes(8 * partitions)
    three_topics = struct.pack(">hii", 1, 1, 3) + topic * 3
    with pytest.raises(TooManyElements):
        decode(ProduceRequest, three_topics, 0)


def test_more_tags_than_a_section_may_hold_are_refused() -> None:
    without_tags = encode(MetadataRequest(topics=[]), 9)[:-1]
    most = without_tags + b"\x7f" + b"\x09\x00" * 127
    assert decode(MetadataRequest, most, 9) == MetadataRequest(topics=[])
    with pytest.raises(TooManyElements):
        decode(MetadataRequest, without_tags + b"\x80\x01" + b"\x09\x00" * 128, 9)


def test_tags_count_towards_the_limit_of_elements() -> None:
    topics = ELEMENTS_MAX // 100
    topic = b"\x01\x01\x7f" + b"\x09\x00" * 127  # a name, no partitions, 127 tags
    data = bytearray(b"\x00\x00\x01\x00\x00\x00\x01")
    write_uvarint(data, topics + 1)
    data += topic * topics + b"\x00"
    with pytest.raises(TooManyElements):
        decode(ProduceRequest, data, 9)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ProtocolError):
        decode(MetadataRequest, b"\x00\x00\x00\x01\x00\x02\xc3\x28", 0)


def test_null_where_null_is_not_allowed_is_refused() -> None:
    with pytest.raises(ProtocolError):
        decode(MetadataRequest, b"\x00\x00\x00\x01\xff\xff", 0)
    with pytest.raises(ProtocolError):
        decode(ProduceRequest, b"\x00\x00\x01\x00\x00\x00\x01\x00\x00", 9)


def test_a_tagged_field_of_another_size_than_it_says_is_refused() -> None:
    # cluster_id "ab" as tag 0 of a FetchRequest: three bytes of content, announced as four
    body = encode(FetchRequest(cluster_id="ab"), 12)
    assert body.endswith(b"\x01\x00\x03\x03ab")
    with pytest.raises(ProtocolError):
        decode(FetchRequest, body[:-4] + b"\x04\x03ab\x00", 12)
