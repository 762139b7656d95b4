"""What can go wrong with a topology, when it is drawn and when it runs.

OttlaError
├── TopologyError        the topology makes no sense; the sentence says what to change
├── ProcessingFailed     a function of the topology, or a serde, failed on a record
└── BufferOverflow       a suppression was told how much it may hold, and has more
"""

from __future__ import annotations

from ottla.errors import ErrorCode, OttlaError


class TopologyError(OttlaError):
    """The topology cannot be built or run as it was drawn."""

    code = ErrorCode.INVALID_REQUEST


class ProcessingFailed(OttlaError):
    """A record made a function or a serde of the topology fail."""

    code = ErrorCode.INVALID_RECORD

    def __init__(self, topic: str, partition: int, offset: int, cause: Exception) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.cause = cause
        kind = type(cause).__name__
        super().__init__(f"record {offset} of {topic}-{partition} failed: {kind}: {cause}")


class BufferOverflow(OttlaError):
    """A suppression holds more than it may and must not let go early."""

    code = ErrorCode.POLICY_VIOLATION

    def __init__(self, node: str, records: int, size_bytes: int) -> None:
        self.node = node
        self.records = records
        self.size_bytes = size_bytes
        super().__init__(
            f"{node} would hold {records} records of {size_bytes} bytes, over its limit"
        )
