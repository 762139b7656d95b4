"""The messages of ControlledShutdown, api key 7: brokers speak it among themselves."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Int64, Message, Schema, String


class ControlledShutdownRequest(Message):
    """A broker that is about to stop asks the controller to move its leaderships.

    Version 0 is not offered: its header is like no other's.
    """

    schema: ClassVar[Schema] = Schema(api_key=7, versions="0-3", flexible="3+", unstable="0")
    broker_id: Annotated[int, Int32("0+")] = 0
    broker_epoch: Annotated[int, Int64("2+")] = -1


class RemainingPartition(Message):
    topic_name: Annotated[str, String("0+")] = ""
    partition_index: Annotated[int, Int32("0+")] = 0


class ControlledShutdownResponse(Message):
    """What the broker still leads, because nobody else could."""

    schema: ClassVar[Schema] = Schema(api_key=7, versions="0-3", flexible="3+", unstable="0")
    error_code: Annotated[int, Int16("0+")] = 0
    remaining_partitions: Annotated[list[RemainingPartition], Array("0+")] = []
