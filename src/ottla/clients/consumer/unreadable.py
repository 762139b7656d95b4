"""What a consumer cannot make a record of: its place, its bytes, what is behind it.

A consumer stands still before it until it is told otherwise, by `skip`, `seek` or `on_error`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from ottla.clients.failures import SerializationFailed
from ottla.errors import CorruptBatch, OttlaError
from ottla.model.ids import TopicPartition
from ottla.records.batch import (
    HEADER_BYTES,
    LENGTH_POSITION,
    LOG_OVERHEAD_BYTES,
    RecordBatch,
    split,
)

if TYPE_CHECKING:
    from ottla.clients.consumer.record import ConsumerRecord

_WAY_OUT: Final = "skip(error) or a seek goes on behind it, and on_error says so beforehand"


class UnreadableRecord(SerializationFailed):
    """A deserializer refuses a record: `record` is the record with its key and value as bytes."""

    def __init__(self, record: ConsumerRecord, cause: Exception) -> None:
        self.topic = record.topic
        self.partition = record.partition
        self.offset = record.offset
        self.next_offset = record.offset + 1
        """Where reading goes on after a skip."""
        self.record = record
        place = f"{record.topic}-{record.partition} at offset {record.offset}"
        super().__init__(f"{place} cannot be deserialized", cause)
        self.add_note(_WAY_OUT)


class UnreadableBatch(CorruptBatch):
    """A batch is damaged, or packed in a way nobody knows: `data` is all of it as it came."""

    def __init__(
        self, where: TopicPartition, offsets: tuple[int, int], cause: Exception, data: bytes
    ) -> None:
        self.topic = where.topic
        self.partition = where.partition
        self.offset, self.next_offset = offsets
        self.record = None
        """A damaged batch has no records; an UnreadableRecord has one."""
        self.cause = cause
        self.data = data
        if isinstance(cause, OttlaError):
            self.code = cause.code
        reason = str(cause) or type(cause).__name__
        if str(where) not in reason:
            reason = f"{where}: {reason}"
        super().__init__(f"{reason}; it cannot be read from offset {self.offset} on")
        self.add_note(_WAY_OUT)


Unreadable = UnreadableRecord | UnreadableBatch
UNREADABLE: Final = (UnreadableRecord, UnreadableBatch)
OnError = Literal["raise", "skip"] | Callable[[Unreadable], object]
"""What happens at a record that cannot be read; a function hears of it, and it is left out."""


def unreadable_batch(
    batch: RecordBatch, where: TopicPartition, position: int, limit: int, cause: Exception
) -> UnreadableBatch:
    """The error for a batch that is begun at the position, and ends at `limit` or before.

    Damage may be in the header too, so that what it says counts only within these bounds.
    """
    offset, end = int(batch.base_offset), int(batch.next_offset)
    if not position <= offset < limit:
        offset = position
    if not offset < end <= limit:
        end = limit if limit > offset else offset + 1
    return UnreadableBatch(where, (offset, end), cause, bytes(batch.view))


def sound_batches(view: memoryview) -> tuple[list[RecordBatch], OttlaError | None]:
    """The batches of an answer up to its end, or up to one whose frame is damaged, and the error.

    An answer may end in the middle of a batch, but not before the end of the first.
    """
    try:
        batches = split(view, ignore_torn_tail=True)
    except OttlaError:
        batches = []
    else:
        if batches and all(batch.next_offset > batch.base_offset for batch in batches):
            return batches, None
    return _until_damage(view)


def _until_damage(view: memoryview) -> tuple[list[RecordBatch], OttlaError | None]:
    batches: list[RecordBatch] = []
    position = 0
    while len(view) - position >= HEADER_BYTES:
        at = position + LENGTH_POSITION
        size_bytes = int.from_bytes(view[at : at + 4], "big", signed=True) + LOG_OVERHEAD_BYTES
        if size_bytes > len(view) - position:
            break
        try:
            if size_bytes < HEADER_BYTES:
                raise CorruptBatch(f"a batch of {size_bytes} bytes is shorter than its header")
            batch = RecordBatch(view[position : position + size_bytes])
            if batch.next_offset <= batch.base_offset:
                raise CorruptBatch(f"the batch at offset {batch.base_offset} ends before it begins")
        except OttlaError as error:
            return batches, error
        batches.append(batch)
        position += size_bytes
    if not batches:
        return [], CorruptBatch(f"an answer of {len(view)} bytes has no whole batch")
    return batches, None
