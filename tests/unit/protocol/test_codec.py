"""The compiled codecs by example: absent fields, nulls, tags, records in place."""

from __future__ import annotations

import pytest

from ottla.model.file_region import FileRegion
from ottla.model.ids import Position
from ottla.protocol.codec import Regions, decode, decoder, encode, encoder
from ottla.protocol.message import NO_UUID
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.messages.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


class ADevice:
    """Something with a descriptor that nobody reads."""

    def fileno(self) -> int:
        return -1


def a_region(size: int) -> FileRegion:
    return FileRegion(ADevice(), Position(0), size)


def a_produce_request() -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=memoryview(b"batch"))
    topic = TopicProduceData(name="orders", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=1500, topic_data=[topic])


def test_a_produce_request_has_the_bytes_the_protocol_says() -> None:
    assert encode(a_produce_request(), 3) == (
        b"\xff\xff"  # no transactional id
        b"\xff\xff\x00\x00\x05\xdc"  # acks, timeout
        b"\x00\x00\x00\x01\x00\x06orders"
        b"\x00\x00\x00\x01\x00\x00\x00\x03"
        b"\x00\x00\x00\x05batch"
    )
    assert encode(a_produce_request(), 9) == (
        b"\x00\xff\xff\x00\x00\x05\xdc"
        b"\x02\x07orders"
        b"\x02\x00\x00\x00\x03\x06batch\x00"  # each struct ends with its tagged section
        b"\x00\x00"
    )


def test_records_are_read_without_a_copy() -> None:
    frame = bytearray(encode(a_produce_request(), 9))
    request = decoder(ProduceRequest, 9)(memoryview(frame))
    records = request.topic_data[0].partition_data[0].records
    assert records is not None
    assert records.obj is frame
    frame[frame.index(b"batch")] = ord("m")
    assert bytes(records) == b"match"


def test_a_field_the_version_lacks_is_left_out_and_read_as_its_default() -> None:
    request = a_produce_request()
    request.topic_data[0].topic_id = b"i" * 16
    by_name = decode(ProduceRequest, encode(request, 12), 12).topic_data[0]
    by_id = decode(ProduceRequest, encode(request, 13), 13).topic_data[0]
    assert (by_name.name, by_name.topic_id) == ("orders", NO_UUID)
    assert (by_id.name, by_id.topic_id) == ("", b"i" * 16)


def test_null_and_empty_arrays_are_told_apart_where_the_version_can() -> None:
    for version in (1, 9):
        assert decode(MetadataRequest, encode(MetadataRequest(topics=None), version), version) == (
            MetadataRequest(topics=None)
        )
        assert decode(MetadataRequest, encode(MetadataRequest(topics=[]), version), version) == (
            MetadataRequest(topics=[])
        )


def test_null_cannot_be_written_where_the_version_has_no_null() -> None:
    with pytest.raises(TypeError) as caught:
        encode(MetadataRequest(topics=None), 0)
    assert "MetadataRequest" in caught.value.__notes__[0]


def test_a_tagged_field_with_its_default_takes_no_bytes() -> None:
    def response(leader: LeaderIdAndEpoch | None) -> ProduceResponse:
        partition = PartitionProduceResponse(index=1, current_leader=leader)
        return ProduceResponse([TopicProduceResponse("t", partition_responses=[partition])])

    absent = encode(response(None), 10)
    assert encode(response(LeaderIdAndEpoch()), 10) == absent
    assert len(encode(response(LeaderIdAndEpoch(2, 7)), 10)) == len(absent) + 11


def test_several_tagged_fields_are_written_by_tag_and_read_in_any_order() -> None:
    partition = PartitionData(diverging_epoch=EpochEndOffset(4, 90))
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    assert decode(FetchResponse, encode(response, 12), 12) == response


def test_a_nullable_struct_has_a_marker_before_it() -> None:
    without = encode(ConsumerGroupHeartbeatResponse(), 0)
    with_one = encode(ConsumerGroupHeartbeatResponse(assignment=Assignment()), 0)
    assert without[-2:] == b"\xff\x00"
    assert with_one[-4:] == b"\x01\x01\x00\x00"
    assert decode(ConsumerGroupHeartbeatResponse, without, 0).assignment is None
    assert decode(ConsumerGroupHeartbeatResponse, with_one, 0).assignment == Assignment()


def test_a_tagged_struct_that_may_be_null_is_written_as_null() -> None:
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    data = encode(value, 0)
    assert data.endswith(b"\x01\x00\x01\xff")
    assert decode(ConsumerGroupMemberMetadataValue, data, 0) == value
    default = ConsumerGroupMemberMetadataValue()
    assert default.classic_member_metadata == ClassicMemberMetadata()
    assert encode(default, 0).endswith(b"\x00")


@pytest.mark.parametrize("version", [4, 12])
def test_a_file_region_is_announced_and_left_to_be_sent(version: int) -> None:
    def response(*records: object) -> FetchResponse:
        partitions = [PartitionData(index, records=r) for index, r in enumerate(records)]
        return FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])

    contents = [b"x" * 5, b"y" * 300]
    out = bytearray()
    regions: Regions = []
    message = response(a_region(5), None, a_region(300))
    encoder(FetchResponse, version)(message, out, regions)
    assert [region.size for _, region in regions] == [5, 300]
    sent = bytes(out)
    for (position, _), content in reversed(list(zip(regions, contents, strict=True))):
        sent = sent[:position] + content + sent[position:]
    assert sent == encode(response(contents[0], None, contents[1]), version)


def test_an_encoder_appends_to_what_is_there() -> None:
    out = bytearray(b"before")
    encoder(ProduceRequest, 9)(a_produce_request(), out, [])
    assert out == b"before" + encode(a_produce_request(), 9)


def test_a_codec_is_compiled_once() -> None:
    assert decoder(ProduceRequest, 9) is decoder(ProduceRequest, 9)
    assert encoder(ProduceRequest, 9) is encoder(ProduceRequest, 9)
    assert decoder(ProduceRequest, 9) is not decoder(ProduceRequest, 10)
