"""A batch's payload made from columns is what the record builder makes one by one."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.producer.encoding import encode_payload
from ottla.records.batch import RecordBatch
from ottla.records.builder import BatchBuilder, BatchHeader, encode_batch

timestamps = st.integers(0, 2**45)
texts = st.one_of(st.none(), st.binary(max_size=40), st.just(b"x" * 5000))
headers = st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))))
rows = st.lists(st.tuples(timestamps, texts, texts, headers), min_size=1, max_size=20)


@given(rows)
def test_columns_make_the_same_bytes_as_rows(records: list) -> None:
    builder = BatchBuilder()
    for timestamp, key, value, pairs in records:
        builder.append(timestamp, key, value, tuple(pairs))
    payload = encode_payload(
        [row[0] for row in records],
        [row[1] for row in records],
        [row[2] for row in records],
        {index: tuple(row[3]) for index, row in enumerate(records) if row[3]},
    )

    assert payload == RecordBatch(memoryview(builder.build())).payload()


def test_a_batch_of_many_records_keeps_their_distances() -> None:
    count = 5000
    payload = encode_payload([7] * count, [None] * count, [b"v"] * count, {})
    header = BatchHeader(count, count - 1, 7, 7)
    records = list(RecordBatch(memoryview(encode_batch(header, payload))).records())

    assert [record.offset for record in records] == list(range(count))
