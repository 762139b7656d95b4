"""The loops themselves: what they do with buffers that do not fit, and that they are up to date."""

from array import array
from hashlib import sha256
from pathlib import Path

import pytest
from crc32c import crc32c

from ottla.errors import InvalidRecord
from ottla.records import speed
from ottla.records.record import Record, RecordShape, encode_record, with_length
from support.record_loops import COMPILED, REFERENCE, Loops, in_both_ways

PAYLOAD = with_length(encode_record(0, 0, b"key", b"value", (("h", b"v"),)))
SHAPE = RecordShape(0, 0, None, 1, 0)


def int32s(count: int) -> memoryview:
    return memoryview(array("i", [0] * count))


def int64s(count: int) -> memoryview:
    return memoryview(array("q", [0] * count))


def test_the_compiled_loops_are_chosen_where_they_were_built() -> None:
    assert (COMPILED is not None) == speed.IS_ACCELERATED
    assert speed.decoding is (COMPILED or REFERENCE).decoding


@pytest.mark.skipif(COMPILED is None, reason="there was no C compiler")
def test_the_compiled_loops_were_made_of_the_present_source() -> None:
    assert COMPILED is not None
    for reference, compiled in (
        (REFERENCE.decoding, COMPILED.decoding),
        (REFERENCE.encoding, COMPILED.encoding),
    ):
        assert reference.__file__ is not None
        digest = sha256(Path(reference.__file__).read_bytes()).hexdigest()
        assert digest == compiled.SOURCE_DIGEST, "build them anew: pip install --editable ."


@in_both_ways
@pytest.mark.parametrize(
    ("numbers", "starts", "ends"),
    [
        (int64s(1), int32s(3), int32s(6)),
        (int64s(2), int32s(2), int32s(6)),
        (int64s(2), int32s(3), int32s(5)),
        (int32s(4), int32s(3), int32s(6)),
        (int64s(4)[::2], int32s(3), int32s(6)),
        (int64s(2).toreadonly(), int32s(3), int32s(6)),
        (int64s(2), int32s(3).toreadonly(), int32s(6)),
    ],
    ids=["numbers", "starts", "ends", "item size", "stride", "read-only", "read-only starts"],
)
def test_columns_without_room_are_refused(
    loops: Loops, numbers: memoryview, starts: memoryview, ends: memoryview
) -> None:
    index = loops.decoding.RecordIndex(numbers, loops.decoding.Places(3, starts, ends))
    with pytest.raises(ValueError, match=r"room|column"):
        index.add(PAYLOAD, SHAPE)


@in_both_ways
def test_columns_that_were_released_are_refused(loops: Loops) -> None:
    numbers = int64s(2)
    index = loops.decoding.RecordIndex(numbers, loops.decoding.Places(3, int32s(3), int32s(6)))
    numbers.release()
    with pytest.raises(ValueError, match="released"):
        index.add(PAYLOAD, SHAPE)


@in_both_ways
def test_a_full_index_takes_no_more(loops: Loops) -> None:
    places = loops.decoding.Places(3, int32s(3), int32s(6))
    index = loops.decoding.RecordIndex(int64s(2), places)
    index.add(PAYLOAD, SHAPE)
    with pytest.raises(ValueError, match="room"):
        index.add(PAYLOAD, SHAPE)
    assert places.count == 1


@in_both_ways
@pytest.mark.parametrize(
    ("starts", "ends", "room"),
    [([0], [0, 5], 4), ([8], [0, 5], 5), ([-1], [0, 5], 5), ([0], [3, 1], 5), ([0], [-2, 3], 5)],
)
def test_values_outside_their_payload_or_column_are_not_copied(
    loops: Loops, starts: list[int], ends: list[int], room: int
) -> None:
    views = memoryview(array("i", starts)), memoryview(array("i", ends))
    with pytest.raises(ValueError, match="row 0"):
        loops.decoding.copy_values(b"0123456789", *views, memoryview(bytearray(room)))


@in_both_ways
def test_headers_that_are_not_in_the_payload_are_refused(loops: Loops) -> None:
    starts = memoryview(array("i", [len(PAYLOAD) - 5]))
    for start, end, room in ((len(PAYLOAD) - 5, 2, 2), (-1, 1, 1), (10**9, 1, 1), (0, 1, 0)):
        starts[0] = start
        places = loops.decoding.Places(2, int32s(2 * room), int32s(2 * room + 2))
        ends = memoryview(array("i", [0, end]))
        with pytest.raises(ValueError, match="row 0"):
            loops.decoding.index_headers(PAYLOAD, starts, ends, places)


@in_both_ways
@pytest.mark.parametrize("ends", [[], [-1, 2], [0, 4], [0, 3, 1], [0, 2**31 - 1, 3]])
def test_a_column_whose_ends_lie_is_refused(loops: Loops, ends: list[int]) -> None:
    with pytest.raises(ValueError, match="column"):
        loops.encoding.BinarySource(memoryview(array("i", ends)), memoryview(b"abc"), None)


@in_both_ways
def test_a_column_without_all_its_null_bits_is_refused(loops: Loops) -> None:
    ends = int32s(10)
    for bits, first in ((b"\xff", 0), (b"\xff\xff", 8), (b"\xff\xff", -1)):
        with pytest.raises(ValueError, match="null bits"):
            loops.encoding.BinarySource(ends, memoryview(b""), memoryview(bits), first)


@in_both_ways
def test_columns_of_different_lengths_are_refused(loops: Loops) -> None:
    column = loops.encoding.BinarySource(int32s(3), memoryview(b""), None)
    with pytest.raises(ValueError, match="lengths"):
        loops.encoding.RecordSource(int64s(3), column, None, None)


@in_both_ways
@pytest.mark.parametrize("counts", [[0, 2], [-1, 1], [1, 0], [0, 2**31 - 1, 1]])
def test_counts_of_headers_that_lie_are_refused(loops: Loops, counts: list[int]) -> None:
    column = loops.encoding.BinarySource(int32s(2), memoryview(b""), None)
    with pytest.raises(ValueError, match="headers"):
        loops.encoding.header_sections(memoryview(array("i", counts)), column, column)


@in_both_ways
def test_rows_are_made_by_whoever_is_asked(loops: Loops) -> None:
    rows = loops.decoding.decode_rows(PAYLOAD, SHAPE, Record)
    assert rows == [Record(0, 0, b"key", b"value", (("h", b"v"),))]
    with pytest.raises(InvalidRecord):
        loops.decoding.decode_rows(PAYLOAD + b"\0", SHAPE)


@in_both_ways
@pytest.mark.parametrize("count", [0, -1])
def test_keys_need_a_partition_to_go_to(loops: Loops, count: int) -> None:
    column = loops.encoding.BinarySource(int32s(2), memoryview(b""), None)
    with pytest.raises(ValueError, match="partition"):
        loops.encoding.place_keys(column, count)


@in_both_ways
@pytest.mark.parametrize("second_bytes", [0, 1, 8, 100, 65_537])
def test_checksums_of_two_parts_give_that_of_both(loops: Loops, second_bytes: int) -> None:
    both = bytes(number * 7 % 251 for number in range(40 + second_bytes))
    first, second = crc32c(both[:40]), crc32c(both[40:])
    assert loops.encoding.joined_checksum(first, second, second_bytes) == crc32c(both)


THREE = [
    with_length(encode_record(delta, at, b"k", b"value")) for at, delta in enumerate((5, -7, 3))
]


@in_both_ways
def test_produced_records_tell_their_earliest_and_latest_time(loops: Loops) -> None:
    assert loops.decoding.check_produced(b"".join(THREE), 3, True) == (-7, 5)


@in_both_ways
def test_every_cut_and_every_flipped_byte_is_refused_or_harmless(loops: Loops) -> None:
    payload = b"".join(THREE)
    for cut in range(len(payload)):
        with pytest.raises(InvalidRecord):
            loops.decoding.check_produced(payload[:cut], 3, False)
    for at in range(len(payload)):
        flipped = payload[:at] + bytes([payload[at] ^ 0xFF]) + payload[at + 1 :]
        answers = {str(_answer(each, flipped)) for each in (loops, REFERENCE)}
        assert len(answers) == 1, at


@in_both_ways
def test_a_record_without_a_key_is_refused_where_keys_are_needed(loops: Loops) -> None:
    keyless = with_length(encode_record(0, 0, None, b"value"))
    assert loops.decoding.check_produced(keyless, 1, False) == (0, 0)
    with pytest.raises(InvalidRecord, match="no key"):
        loops.decoding.check_produced(keyless, 1, True)


def _answer(loops: Loops, payload: bytes) -> object:
    try:
        return loops.decoding.check_produced(payload, 3, False)
    except InvalidRecord as error:
        return str(error)
