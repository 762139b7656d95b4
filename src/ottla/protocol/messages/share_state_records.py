"""The records of __share_group_state."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import (
    NO_UUID,
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Uuid,
)


class ShareSnapshotKey(Message):
    """Which share partition's snapshot."""

    schema: ClassVar[Schema] = Schema(record_type=0, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partition: Annotated[int, Int32("0+")] = 0


class StateBatch(Message):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    delivery_state: Annotated[int, Int8("0+")] = 0
    delivery_count: Annotated[int, Int16("0+")] = 0


class ShareSnapshotValue(Message):
    """The full state of a share partition."""

    schema: ClassVar[Schema] = Schema(record_type=0, versions="0", flexible="0+")
    snapshot_epoch: Annotated[int, Int32("0+")] = 0
    state_epoch: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0
    delivery_complete_count: Annotated[int, Int32("0+", tag=0)] = -1
    create_timestamp: Annotated[int, Int64("0+")] = 0
    write_timestamp: Annotated[int, Int64("0+")] = 0
    state_batches: Annotated[list[StateBatch], Array("0+")] = []


class ShareUpdateKey(Message):
    """Which share partition's update."""

    schema: ClassVar[Schema] = Schema(record_type=1, versions="0")
    group_id: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partition: Annotated[int, Int32("0+")] = 0


class ShareUpdateValue(Message):
    """What changed in a share partition since its snapshot."""

    schema: ClassVar[Schema] = Schema(record_type=1, versions="0", flexible="0+")
    snapshot_epoch: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = 0
    start_offset: Annotated[int, Int64("0+")] = 0
    delivery_complete_count: Annotated[int, Int32("0+", tag=0)] = -1
    state_batches: Annotated[list[StateBatch], Array("0+")] = []
