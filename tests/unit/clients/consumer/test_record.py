"""Whole batches become the records that the reference decoder finds, compiled or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.consumer import record as decoding
from ottla.clients.consumer.record import ConsumerRecord, Decoding, decode_batch, deserialize
from ottla.clients.failures import SerializationFailed
from ottla.errors import CorruptBatch
from ottla.model.ids import TopicPartition
from ottla.records import speed
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Compression

HERE = TopicPartition("t", 3)
texts = st.one_of(st.none(), st.binary(max_size=80), st.just(b"x" * 9000))
headers = st.lists(st.tuples(st.text(max_size=4), st.one_of(st.none(), st.binary(max_size=4))))
rows = st.lists(
    st.tuples(st.integers(0, 2**44), texts, texts, st.one_of(st.just([]), headers)), min_size=1
)


def batch_of(records: list, compression: Compression = Compression.NONE) -> RecordBatch:
    builder = BatchBuilder()
    for timestamp, key, value, pairs in records:
        builder.append(timestamp, key, value, tuple(pairs))
    return RecordBatch(memoryview(builder.build(base_offset=40, compression=compression)))


def as_tuple(record: ConsumerRecord) -> tuple:
    return (record.offset, record.timestamp_ms, record.key, record.value, record.headers)


@pytest.mark.parametrize("is_accelerated", [False, speed.IS_ACCELERATED])
@given(records=rows)
def test_a_batch_is_decoded_as_by_the_reference(is_accelerated: bool, records: list) -> None:
    batch = batch_of(records)
    expected = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch.records()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding.speed, "IS_ACCELERATED", is_accelerated)
        found = decode_batch(batch, HERE, 0, Decoding())

    assert [as_tuple(record) for record in found] == expected
    assert {(record.topic, record.partition) for record in found} == {("t", 3)}


def test_many_small_records_take_the_short_way() -> None:
    batch = batch_of([(7 + n, b"key" if n % 2 else None, b"v" * n, ()) for n in range(3000)])
    found = decoding._decode_plain(batch.payload(), batch, HERE)

    assert found is not None
    assert [record.offset for record in found] == list(range(40, 3040))
    assert found[2999].value == b"v" * 2999
    assert found[2999].timestamp_ms == 7 + 2999


def test_records_before_the_position_are_left_out() -> None:
    batch = batch_of([(1, None, b"%d" % n, ()) for n in range(5)])

    assert [r.offset for r in decode_batch(batch, HERE, 43, Decoding())] == [43, 44]


def test_damage_is_found_unless_checksums_are_off() -> None:
    data = bytearray(batch_of([(1, None, b"value", ())]).view)
    data[-2] ^= 1
    batch = RecordBatch(memoryview(data))

    with pytest.raises(CorruptBatch, match="t-3"):
        decode_batch(batch, HERE, 0, Decoding())
    assert decode_batch(batch, HERE, 0, Decoding(checks_crc=False))


def test_deserializers_spare_nulls_and_say_where_they_failed() -> None:
    batch = batch_of([(1, None, b"5", ()), (1, b"k", b"x", ())])

    records = decode_batch(batch, HERE, 0, Decoding())

    assert [r.value for r in deserialize(records, Decoding(value=int))] == [5]
    with pytest.raises(SerializationFailed, match="t-3 at offset 41"):
        deserialize(records[1:], Decoding(value=int))
    assert [r.key for r in deserialize(records, Decoding(key=bytes.decode))] == [None, "k"]
