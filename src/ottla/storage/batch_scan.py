"""Walks over the batches of a data file, reading as little of it as the purpose needs.

`walk` reads headers only and believes them; `verify` reads everything and checks it. Neither knows
about indexes or segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from ottla.errors import RecordError
from ottla.model.ids import Offset, Position
from ottla.records.batch import HEADER, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, RecordBatch
from ottla.records.compression import COMPRESSION_BITS, Compression
from ottla.storage.disk import File

WALK_CHUNK_BYTES: Final = 8 * 1024
"""One read covers several small batches; of a large one, little beyond its header."""
VERIFY_CHUNK_BYTES: Final = 1024 * 1024
BATCH_BYTES_MAX: Final = 2**31 - 1
_SPAN: Final = Struct(">qi4xb6xi")
"""Base offset, length, magic and last offset delta: where a header has them."""
_SPAN_BYTES: Final = _SPAN.size
_unpack_span = _SPAN.unpack


class ScannedHeader(NamedTuple):
    """The fields of a batch's header, and where the batch begins."""

    position: int
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    def can_be(self, next_offset: int, end_offset: int) -> bool:
        """Whether a batch between these offsets could have this header."""
        return (
            next_offset <= self.base_offset
            and 0 <= self.last_offset_delta < end_offset - self.base_offset
            and 0 <= self.record_count <= self.last_offset_delta + 1
            and self.attributes & COMPRESSION_BITS <= Compression.ZSTD
        )


class Span(NamedTuple):
    """Which offsets a batch holds, and how many bytes it has."""

    base_offset: int
    last_offset: int
    size_bytes: int


def span_at(file: File, position: int, end: int) -> Span | None:
    """Of the batch that begins at `position`; None where none does that ends by `end`.

    As far as its header tells: what stands there by chance is not told from a batch.
    """
    data = file.read_at(position, _SPAN_BYTES)
    if len(data) < _SPAN_BYTES:
        return None
    base_offset, length, magic, last_offset_delta = _unpack_span(data)
    size_bytes = length + LOG_OVERHEAD_BYTES
    if magic != MAGIC or position + size_bytes > end:
        return None
    return Span(base_offset, base_offset + last_offset_delta, size_bytes)


def walk(
    file: File, start: int, end: int, *, chunk_bytes: int = WALK_CHUNK_BYTES
) -> Iterator[ScannedHeader]:
    """The header of each batch in [start, end). Stops where something is not a whole batch."""
    position = start
    chunk = b""
    chunk_start = start
    unpack = HEADER.unpack_from
    while position + HEADER_BYTES <= end:
        at = position - chunk_start
        if at + HEADER_BYTES > len(chunk):
            chunk = file.read_at(position, min(chunk_bytes, end - position))
            chunk_start, at = position, 0
            if len(chunk) < HEADER_BYTES:
                return
        header = ScannedHeader(position, *unpack(chunk, at))
        after = position + header.length + LOG_OVERHEAD_BYTES
        if header.magic != MAGIC or after - position < HEADER_BYTES or after > end:
            return
        yield header
        position = after


class Verified(NamedTuple):
    """A batch that is what it says, and where it begins."""

    position: Position
    batch: RecordBatch


def verify(file: File, start: int, end: int, *, next_offset: int) -> Iterator[Verified]:
    """Each intact batch from `start` on; stops at the first that is torn, damaged or out of order.

    Offsets must not go back: the first batch begins at `next_offset` or later.
    """
    position = start
    chunk = memoryview(b"")
    chunk_start = start
    while position + HEADER_BYTES <= end:
        at = position - chunk_start
        need = HEADER_BYTES
        if len(chunk) - at >= LOG_OVERHEAD_BYTES:
            need = int.from_bytes(chunk[at + 8 : at + 12], "big", signed=True) + LOG_OVERHEAD_BYTES
            if need < HEADER_BYTES or position + need > end:
                return
        if len(chunk) - at < max(need, LOG_OVERHEAD_BYTES):
            size = min(max(need, VERIFY_CHUNK_BYTES), end - position)
            chunk = memoryview(file.read_at(position, size))
            chunk_start = position
            if len(chunk) < min(need, size):
                return
            continue
        batch = _intact(chunk[at : at + need], next_offset)
        if batch is None:
            return
        yield Verified(Position(position), batch)
        next_offset = batch.next_offset
        position += need


def _intact(view: memoryview, next_offset: int) -> RecordBatch | None:
    try:
        batch = RecordBatch(view)
        batch.check()
    except RecordError:
        return None
    return batch if batch.base_offset >= next_offset else None


def read_batch(file: File, header: ScannedHeader) -> RecordBatch:
    """The whole batch a header stands for."""
    return RecordBatch(memoryview(bytearray(file.read_at(header.position, header.size_bytes))))
