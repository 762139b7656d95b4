"""What members of a classic consumer group tell each other inside JoinGroup and SyncGroup."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bytes, Int32, Message, Schema, String


class ConsumerProtocolSubscriptionTopicPartition(Message):
    topic: Annotated[str, String("1+")] = ""
    partitions: Annotated[list[int], Array("1+", of=Int32)] = []


class ConsumerProtocolSubscription(Message):
    """What a member of a classic consumer group wants to read and owns already."""

    schema: ClassVar[Schema] = Schema(versions="0-3")
    topics: Annotated[list[str], Array("0+", of=String)] = []
    user_data: Annotated[bytes | None, Bytes("0+", nullable="0+")] = None
    owned_partitions: Annotated[list[ConsumerProtocolSubscriptionTopicPartition], Array("1+")] = []
    generation_id: Annotated[int, Int32("2+")] = -1
    rack_id: Annotated[str | None, String("3+", nullable="3+")] = None


class ConsumerProtocolAssignmentTopicPartition(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class ConsumerProtocolAssignment(Message):
    """What a member of a classic consumer group should read."""

    schema: ClassVar[Schema] = Schema(versions="0-3")
    assigned_partitions: Annotated[list[ConsumerProtocolAssignmentTopicPartition], Array("0+")] = []
    user_data: Annotated[bytes | None, Bytes("0+", nullable="0+")] = None
