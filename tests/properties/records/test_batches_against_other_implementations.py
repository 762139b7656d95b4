"""Version 2 batches: what we write others read, and what they write we read.

The others are kafka-python and aiokafka. Codecs kafka-python has no library for are aiokafka's.
"""

from collections.abc import Callable
from typing import Any

import kafka.codec
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords as KafkaPythonRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ottla.records.batch import split
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record

some_bytes = st.one_of(st.none(), st.binary(max_size=300), st.just(b"x" * 20_000))
some_headers = st.lists(
    st.tuples(st.text(max_size=20), st.one_of(st.none(), st.binary(max_size=20))), max_size=3
).map(tuple)
some_records = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(0, 2**43),
        key=some_bytes,
        value=some_bytes,
        headers=some_headers,
    ),
    min_size=1,
    max_size=80,
).map(lambda records: [Record(i, *_fields(record)) for i, record in enumerate(records)])
some_producer = st.one_of(
    st.just(ProducerStamp()),
    st.builds(
        ProducerStamp,
        producer_id=st.integers(0, 2**63 - 1),
        producer_epoch=st.integers(0, 2**15 - 1),
        base_sequence=st.integers(0, 2**31 - 1),
        is_transactional=st.booleans(),
    ),
)

_KAFKA_PYTHON_CODECS = [
    Compression.NONE,
    *(
        codec
        for codec in list(Compression)[1:]
        if getattr(kafka.codec, f"has_{codec.config_name}")()
    ),
]
OTHERS = [
    *((KafkaPythonRecords, KafkaPythonBuilder, codec) for codec in _KAFKA_PYTHON_CODECS),
    *((AioRecords, AioBuilder, codec) for codec in Compression),
]


def _fields(record: Record) -> tuple[int, bytes | None, bytes | None, Any]:
    return record.timestamp, record.key, record.value, record.headers


def _name(value: object) -> str:
    if isinstance(value, Compression):
        return value.config_name
    return f"{getattr(value, '__module__', '')}".split(".")[0]


@pytest.mark.parametrize(("reader", "_builder", "codec"), OTHERS, ids=_name)
@given(records=some_records, producer=some_producer)
def test_others_read_what_we_write(
    reader: Callable[[bytes], Any],
    _builder: object,
    codec: Compression,
    records: list[Record],
    producer: ProducerStamp,
) -> None:
    written = build_batch(records, base_offset=1_000, compression=codec, producer=producer)
    batches = reader(bytes(written))
    batch = batches.next_batch()
    assert batch.validate_crc()
    assert [
        Record(r.offset - 1_000, r.timestamp, r.key, r.value, tuple(map(tuple, r.headers)))
        for r in batch
    ] == records
    assert batch.next_offset == 1_000 + len(records)
    assert batch.producer_id == producer.producer_id
    assert batch.is_transactional == producer.is_transactional
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert not batches.has_next()


@pytest.mark.parametrize(("_reader", "builder", "codec"), OTHERS, ids=_name)
@given(records=some_records, producer=some_producer)
def test_we_read_what_others_write(
    _reader: object,
    builder: Callable[..., Any],
    codec: Compression,
    records: list[Record],
    producer: ProducerStamp,
) -> None:
    other = builder(
        magic=2,
        compression_type=int(codec),
        is_transactional=producer.is_transactional,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
        batch_size=2**30,
    )
    for record in records:
        other.append(
            record.offset,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
        )
    (batch,) = split(memoryview(other.build()))
    batch.check_as_produced()
    batch.check_records()
    assert list(batch.records()) == records
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert batch.last_offset_delta == len(records) - 1
    assert batch.producer_epoch == producer.producer_epoch
    assert batch.base_sequence == producer.base_sequence
    if codec is Compression.NONE:
        assert build_batch(records, producer=producer)[16:] == batch.view[16:]
