"""The distinct kinds of numbers and names. An offset counts records, a position counts bytes."""

from __future__ import annotations

from typing import Final, NewType

import msgspec

Offset = NewType("Offset", int)
Position = NewType("Position", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
BrokerId = NewType("BrokerId", int)
TopicId = NewType("TopicId", bytes)
"""The sixteen bytes of a topic's uuid."""

NO_TOPIC_ID: Final = TopicId(bytes(16))
NO_PRODUCER_ID: Final = ProducerId(-1)
NO_LEADER_EPOCH: Final = LeaderEpoch(-1)
NO_TIMESTAMP: Final = -1


class TopicPartition(msgspec.Struct, frozen=True, order=True):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
