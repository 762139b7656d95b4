"""What the maker of an offset's record says of it is what its bytes say."""

from __future__ import annotations

import pytest

from ottla.coordination.group.records import decode_record, offset_record
from ottla.model.ids import NO_TOPIC_ID
from ottla.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue

TOPIC_ID = bytes(range(16))


@pytest.mark.parametrize("topic_id", [NO_TOPIC_ID, TOPIC_ID])
@pytest.mark.parametrize("group", ["readers", "g" * 101, "Überleser" * 12, ""])
def test_a_commit_says_what_can_be_read_back(group: str, topic_id: bytes) -> None:
    for partition in (0, 1, 2**31 - 1):
        key = OffsetCommitKey(group=group, topic="tünchen", partition=partition)
        value = OffsetCommitValue(
            offset=2**40, leader_epoch=7, metadata="ä", commit_timestamp=5, topic_id=topic_id
        )
        for _ in range(2):  # the second time the key is known
            record = offset_record(key, value)
            assert record.said == (key, value)
            assert decode_record(record.key, record.value) == record.said


def test_a_commit_with_an_expiry_is_read_back_because_its_version_says_less() -> None:
    key = OffsetCommitKey(group="readers", topic="events", partition=0)
    value = OffsetCommitValue(offset=9, leader_epoch=7, metadata="", expire_timestamp=10)
    record = offset_record(key, value)
    assert record.said is None
    decoded = decode_record(record.key, record.value)
    assert decoded is not None
    read = decoded[1]
    assert isinstance(read, OffsetCommitValue)
    assert (read.offset, read.expire_timestamp, read.leader_epoch) == (9, 10, -1)
