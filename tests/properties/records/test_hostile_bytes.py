"""Whatever the bytes, the answer is records or a RecordError, in bounded memory."""

import struct
import zlib

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import RecordError
from ottla.records.batch import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_BYTES, RecordBatch, split
from ottla.records.builder import build_batch
from ottla.records.compression import Compression, decompress
from ottla.records.control import read_marker
from ottla.records.legacy import downconvert, upconvert
from ottla.records.message_set import LegacyMessage, encode_message, encode_wrapped, read_messages
from ottla.records.record import Record, RecordShape, decode_records, scan_records
from ottla.records.rewrite import empty_batch, filter_records, recompress

_LIMIT_BYTES = 100_000
_RECORDS = [Record(i, 1_000 + i, b"k%d" % i, b"v" * i, (("h", b"v"),)) for i in range(5)]
_BATCHES = [bytes(build_batch(_RECORDS, compression=codec)) for codec in Compression]
_MESSAGES = [LegacyMessage(i, magic, b"k", b"v" * i) for magic in (0, 1) for i in range(3)]
_SETS = [
    b"".join(map(encode_message, _MESSAGES)),
    *(
        encode_wrapped(messages, codec)
        for messages in (_MESSAGES[:3], _MESSAGES[3:])
        for codec in list(Compression)[1:4]
    ),
]
edits = st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=6)


def edited(original: bytes, changes: list[tuple[int, int]], first: int = 0) -> bytearray:
    copy = bytearray(original)
    for position, byte in changes:
        copy[first + position % (len(copy) - first)] = byte
    return copy


def use_every_way(batch: RecordBatch) -> None:
    """Whatever may be asked of a batch that came over the wire or from a disk."""
    for ask in (
        lambda: batch.check_as_produced(),
        lambda: batch.check_records(needs_keys=True, limit_bytes=_LIMIT_BYTES),
        lambda: list(batch.records(_LIMIT_BYTES)),
        lambda: read_marker(batch),
        lambda: recompress(batch, Compression.NONE),
        lambda: filter_records(batch, lambda record: record.offset % 2 == 0),
        lambda: filter_records(batch, lambda record: True, delete_horizon_ms=5),
        lambda: empty_batch(batch),
        lambda: downconvert(batch.view, 0),
        lambda: downconvert(batch.view, 1),
        lambda: repr(batch),
        lambda: batch.last_sequence,
    ):
        try:
            ask()
        except RecordError:
            pass


@given(data=st.binary(max_size=300), ignore=st.booleans())
def test_random_bytes_are_batches_or_an_error(data: bytes, ignore: bool) -> None:
    try:
        batches = split(memoryview(data), ignore_torn_tail=ignore)
    except RecordError:
        return
    for batch in batches:
        use_every_way(batch)


@given(original=st.sampled_from(_BATCHES), changes=edits)
def test_a_damaged_batch_with_a_right_checksum_raises_only_record_errors(
    original: bytes, changes: list[tuple[int, int]]
) -> None:
    damaged = edited(original, changes, first=ATTRIBUTES_POSITION)
    struct.pack_into(">I", damaged, CRC_POSITION, crc32c(damaged[ATTRIBUTES_POSITION:]))
    use_every_way(RecordBatch(memoryview(damaged)))


@given(header=st.binary(min_size=40, max_size=40), original=st.sampled_from(_BATCHES))
def test_any_header_at_all_raises_only_record_errors(header: bytes, original: bytes) -> None:
    damaged = bytearray(original)
    damaged[ATTRIBUTES_POSITION:HEADER_BYTES] = header
    struct.pack_into(">I", damaged, CRC_POSITION, crc32c(damaged[ATTRIBUTES_POSITION:]))
    use_every_way(RecordBatch(memoryview(damaged)))


@given(payload=st.binary(max_size=200), count=st.integers(-2, 30))
def test_a_payload_of_random_bytes_is_records_or_an_error(payload: bytes, count: int) -> None:
    shape = RecordShape(0, 0, None, count, count - 1)
    try:
        records = list(decode_records(payload, shape))
    except RecordError:
        return
    # What can be decoded can be scanned, to the same keys.
    assert [raw.key for raw in scan_records(payload, shape)] == [r.key for r in records]


@given(data=st.binary(max_size=300))
def test_random_bytes_are_messages_or_an_error(data: bytes) -> None:
    try:
        list(read_messages(memoryview(data), limit_bytes=_LIMIT_BYTES))
    except RecordError:
        pass


@given(original=st.sampled_from(_SETS), changes=edits, mend=st.booleans())
def test_a_damaged_message_set_raises_only_record_errors(
    original: bytes, changes: list[tuple[int, int]], mend: bool
) -> None:
    damaged = edited(original, changes)
    if mend:  # the first message's size and checksum, so that what is inside is reached
        struct.pack_into(">i", damaged, 8, len(damaged) - 12)
        struct.pack_into(">I", damaged, 12, zlib.crc32(damaged[16:]))
    try:
        upconverted = upconvert(memoryview(damaged), limit_bytes=_LIMIT_BYTES)
    except RecordError:
        return
    for batch in split(memoryview(upconverted)):
        batch.check_as_produced()
        batch.check_records()


@given(codec=st.sampled_from(list(Compression)), data=st.binary(max_size=200))
def test_random_bytes_decompress_or_raise_a_record_error(codec: Compression, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, _LIMIT_BYTES)) <= _LIMIT_BYTES
    except RecordError:
        pass
