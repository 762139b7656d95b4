"""Formats 0 and 1: what we write others read, and what they write we read and convert.

kafka-python writes lz4 in format 0 only with a library that is not always there, and aiokafka not
at all; the checksum of that frame has its own unit test.
"""

from collections.abc import Callable
from typing import Any

import kafka.codec
import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords as KafkaPythonRecords
from kafka.record.legacy_records import LegacyRecordBatchBuilder as KafkaPythonBuilder

from ottla.records.batch import split
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.legacy import downconvert, upconvert
from ottla.records.message_set import LegacyMessage, encode_message, encode_wrapped, read_messages
from ottla.records.record import Record

some_bytes = st.one_of(st.none(), st.binary(max_size=300), st.just(b"x" * 20_000))
some_triples = st.lists(
    st.tuples(st.integers(0, 2**43), some_bytes, some_bytes), min_size=1, max_size=40
)
Triples = list[tuple[int, bytes | None, bytes | None]]

_OLD_CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
_KAFKA_PYTHON_CODECS = [
    codec
    for codec in _OLD_CODECS
    if codec is Compression.NONE or getattr(kafka.codec, f"has_{codec.config_name}")()
]
OTHERS = [
    (reader, builder, magic, codec)
    for reader, builder, codecs in (
        (KafkaPythonRecords, KafkaPythonBuilder, _KAFKA_PYTHON_CODECS),
        (AioRecords, AioBuilder, _OLD_CODECS),
    )
    for codec in codecs
    for magic in (0, 1)
    if (magic, codec) != (0, Compression.LZ4)
]


def _name(value: object) -> str:
    if isinstance(value, Compression):
        return value.config_name
    return str(value) if isinstance(value, int) else f"{value.__module__}".split(".")[0]


def read_all(reader: Callable[[bytes], Any], data: bytes) -> list[Any]:
    found = []
    batches = reader(data)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        found += list(batch)
    return found


def expected_timestamp(magic: int, timestamp: int) -> int:
    return timestamp if magic else -1


@pytest.mark.parametrize(("reader", "_builder", "magic", "codec"), OTHERS, ids=_name)
@given(triples=some_triples)
def test_others_read_what_we_write(
    reader: Callable[[bytes], Any],
    _builder: object,
    magic: int,
    codec: Compression,
    triples: Triples,
) -> None:
    messages = [
        LegacyMessage(1_000 + 2 * i, magic, key, value, timestamp)
        for i, (timestamp, key, value) in enumerate(triples)
    ]
    if codec is Compression.NONE:
        written = b"".join(map(encode_message, messages))
    else:
        written = encode_wrapped(messages, codec)
    found = read_all(reader, written)
    assert [(r.offset, r.key, r.value) for r in found] == [
        (m.offset, m.key, m.value) for m in messages
    ]
    if magic:
        assert [r.timestamp for r in found] == [m.timestamp for m in messages]


@pytest.mark.parametrize(("_reader", "builder", "magic", "codec"), OTHERS, ids=_name)
@given(triples=some_triples)
def test_we_read_and_convert_what_others_write(
    _reader: object,
    builder: Callable[..., Any],
    magic: int,
    codec: Compression,
    triples: Triples,
) -> None:
    other = builder(magic=magic, compression_type=int(codec), batch_size=2**30)
    for offset, (timestamp, key, value) in enumerate(triples):
        other.append(offset, timestamp, key, value)
    written = memoryview(other.build())
    assert [(m.timestamp, m.key, m.value) for m in read_messages(written)] == [
        (expected_timestamp(magic, timestamp), key, value) for timestamp, key, value in triples
    ]
    (batch,) = split(memoryview(upconvert(written)))
    batch.check_as_produced()
    assert batch.compression is codec
    assert list(batch.records()) == [
        Record(i, expected_timestamp(magic, timestamp), key, value)
        for i, (timestamp, key, value) in enumerate(triples)
    ]


@pytest.mark.parametrize(("reader", "_builder", "magic", "codec"), OTHERS, ids=_name)
@given(batches=st.lists(some_triples, min_size=1, max_size=3))
def test_others_read_new_batches_converted_down(
    reader: Callable[[bytes], Any],
    _builder: object,
    magic: int,
    codec: Compression,
    batches: list[Triples],
) -> None:
    records: list[Record] = []
    stored = b""
    for triples in batches:
        base_offset = len(records)
        added = [
            Record(base_offset + i, *triple, (("lost", b""),)) for i, triple in enumerate(triples)
        ]
        stored += build_batch(added, base_offset=base_offset, compression=codec)
        records += added
    found = read_all(reader, downconvert(memoryview(stored), magic))
    assert [(r.offset, r.key, r.value) for r in found] == [
        (r.offset, r.key, r.value) for r in records
    ]
    if magic:
        assert [r.timestamp for r in found] == [r.timestamp for r in records]


@pytest.mark.parametrize("codec", _OLD_CODECS, ids=_name)
@pytest.mark.parametrize("magic", [0, 1])
@given(triples=some_triples)
def test_down_and_up_again_loses_only_what_the_old_format_lacks(
    magic: int, codec: Compression, triples: Triples
) -> None:
    records = [Record(i, *triple) for i, triple in enumerate(triples)]
    stored = build_batch(records, compression=codec)
    (batch,) = split(memoryview(upconvert(memoryview(downconvert(memoryview(stored), magic)))))
    assert list(batch.records()) == [
        Record(r.offset, expected_timestamp(magic, r.timestamp), r.key, r.value) for r in records
    ]
