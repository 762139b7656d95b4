"""Control batches: the markers that end a transaction in a partition.

A control batch holds one record. Its key says what it is (version int16, type int16); the value
of a transaction's marker is a version (int16) and the coordinator's epoch (int32).
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

import msgspec

from ottla.errors import InvalidRecord
from ottla.records.batch import CONTROL_BIT, RecordBatch
from ottla.records.builder import BatchBuilder, ProducerStamp

_KEY: Final = struct.Struct(">hh")
_MARKER: Final = struct.Struct(">hi")
_VERSION: Final = 0


class ControlType(IntEnum):
    """What a control record says. Types beyond these are another system's and are passed over."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(msgspec.Struct, frozen=True):
    """One transaction of a producer ended here, in this way, by the order of that coordinator."""

    type: ControlType
    coordinator_epoch: int


def marker_batch(
    marker: EndTransactionMarker, *, producer_id: int, producer_epoch: int, timestamp: int
) -> bytearray:
    """The batch that ends the producer's transaction."""
    builder = BatchBuilder()
    builder.append(
        timestamp,
        _KEY.pack(_VERSION, marker.type),
        _MARKER.pack(_VERSION, marker.coordinator_epoch),
    )
    producer = ProducerStamp(producer_id, producer_epoch, is_transactional=True)
    return builder.build(producer=producer, attributes=CONTROL_BIT)


def read_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """The marker in a control batch; None if it holds no record, or one of another type."""
    for record in batch.records():
        try:
            _, number = _KEY.unpack_from(record.key or b"")
            if number not in (ControlType.ABORT, ControlType.COMMIT):
                return None
            _, coordinator_epoch = _MARKER.unpack_from(record.value or b"")
        except struct.error:
            raise InvalidRecord("a control record is too short") from None
        return EndTransactionMarker(ControlType(number), coordinator_epoch)
    return None
