"""Records gathered one by one make the payload that the record builder makes, in both ways."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.partitioner import murmur2
from ottla.records.batch import HEADER_BYTES, RecordBatch
from ottla.records.builder import BatchBuilder, BatchHeader, seal
from ottla.records.compression import Compression
from ottla.records.record import encode_headers
from support.record_loops import COMPILED, Loops, in_both_ways

timestamps = st.integers(-(2**40), 2**45)
texts = st.one_of(st.none(), st.binary(max_size=40), st.just(b"x" * 5000), st.just(b"y" * 20_000))
headers = st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))))
rows = st.lists(st.tuples(timestamps, texts, texts, headers), min_size=1, max_size=20)


@in_both_ways
@given(rows)
def test_gathered_records_make_the_same_bytes_as_built_ones(loops: Loops, records: list) -> None:
    builder = BatchBuilder()
    gatherer = loops.encoding.RecordGatherer(3, sys.maxsize)
    numbers = []
    for timestamp, key, value, pairs in records:
        builder.append(timestamp, key, value, tuple(pairs))
        section = encode_headers(tuple(pairs))
        numbers.append(gatherer.append(timestamp, key, value, section))

    assert numbers == list(range(len(records)))
    assert gatherer.count() == len(records)
    assert gatherer.timestamps() == [row[0] for row in records]
    assert gatherer.max_timestamp() == max(row[0] for row in records)
    assert gatherer.payload() == bytes(3) + RecordBatch(memoryview(builder.build())).payload()


@in_both_ways
def test_many_records_keep_their_distances(loops: Loops) -> None:
    count = 20_000
    gatherer = loops.encoding.RecordGatherer(HEADER_BYTES, sys.maxsize)
    for _ in range(count):
        gatherer.append(7, None, b"v")
    batch = gatherer.payload()
    seal(batch, BatchHeader(count, count - 1, 7, 7), Compression.NONE)

    offsets = [record.offset for record in RecordBatch(memoryview(batch)).records()]
    assert offsets == list(range(count))


@in_both_ways
def test_a_record_without_room_is_left_out(loops: Loops) -> None:
    gatherer = loops.encoding.RecordGatherer(10, 10 + 12 + 5)

    assert gatherer.append(1, None, b"123456") == -1
    assert gatherer.append(1, b"12", b"345") == 0
    assert gatherer.append(1, None, None) == -1
    assert (gatherer.count(), gatherer.size()) == (1, 10 + 12 + 5)
    gatherer.grow(10 + 2 * 12 + 5)
    assert gatherer.append(2, None, None) == 1


@in_both_ways
def test_a_closed_gatherer_takes_nothing(loops: Loops) -> None:
    gatherer = loops.encoding.RecordGatherer(0, 1000)
    gatherer.append(1, None, b"one")
    gatherer.close()

    assert gatherer.append(1, None, b"two") == -1
    assert gatherer.count() == 1


@in_both_ways
@pytest.mark.parametrize("strange", ["text", bytearray(b"b"), memoryview(b"m"), 7])
def test_what_is_not_bytes_is_not_taken(loops: Loops, strange: object) -> None:
    gatherer = loops.encoding.RecordGatherer(0, 1000)

    assert gatherer.append(1, strange, b"value") == -1
    assert gatherer.append(1, b"key", strange) == -1
    assert gatherer.count() == 0


@pytest.mark.skipif(COMPILED is None, reason="there was no C compiler")
def test_compiled_appends_need_no_lock() -> None:
    assert COMPILED is not None
    gatherer = COMPILED.encoding.RecordGatherer(HEADER_BYTES, sys.maxsize)
    taken: list[list[tuple[int, bytes]]] = [[], [], [], []]

    def work(who: int) -> None:
        while len(taken[who]) < 5000:
            value = b"%d-%d" % (who, len(taken[who]))
            number = gatherer.append(7, None, value)
            if number < 0:
                return
            taken[who].append((number, value))

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while gatherer.count() < 8000 and any(thread.is_alive() for thread in threads):
            pass
        gatherer.close()
        for thread in threads:
            thread.join(30)
    finally:
        sys.setswitchinterval(interval)
    count = gatherer.count()
    batch = gatherer.payload()
    seal(batch, BatchHeader(count, count - 1, 7, 7), Compression.NONE)
    found = [(record.offset, record.value) for record in RecordBatch(memoryview(batch)).records()]

    assert found == sorted(pair for pairs in taken for pair in pairs)


@in_both_ways
@given(st.binary(max_size=70))
def test_a_key_has_the_hash_of_javas_clients(loops: Loops, key: bytes) -> None:
    assert loops.encoding.hash_of_key(key) == murmur2(key) & 0x7FFFFFFF
