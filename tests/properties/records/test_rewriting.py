"""Batches made from batches agree with a plain list of records."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp, build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record
from ottla.records.rewrite import filter_records, recompress

codecs = st.sampled_from(list(Compression))
some_records = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(-1, 2**60),
        key=st.one_of(st.none(), st.binary(max_size=5)),
        value=st.one_of(st.none(), st.binary(max_size=200)),
        headers=st.lists(
            st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2
        ).map(tuple),
    ),
    min_size=1,
    max_size=200,
)


@given(
    records=some_records,
    codec=codecs,
    choices=st.lists(st.sets(st.integers(0, 199)), min_size=1, max_size=3),
    horizon_ms=st.one_of(st.none(), st.integers(0, 2**60)),
)
def test_compacting_again_and_again_keeps_exactly_what_was_chosen(
    records: list[Record], codec: Compression, choices: list[set[int]], horizon_ms: int | None
) -> None:
    producer = ProducerStamp(1, 2, 3)
    batch = RecordBatch(
        memoryview(build_batch(records, base_offset=500, compression=codec, producer=producer))
    )
    model = list(batch.records())
    last_offset, last_sequence = batch.last_offset, batch.last_sequence
    for dropped in choices:
        content = filter_records(
            batch,
            lambda raw, dropped=dropped: raw.offset - 500 not in dropped,
            delete_horizon_ms=horizon_ms,
        )
        model = [record for record in model if record.offset - 500 not in dropped]
        if content is None:
            assert model == []
            return
        batch = RecordBatch(memoryview(content))
        batch.check()
        batch.check_records()
        assert list(batch.records()) == model
        assert batch.max_timestamp == max(record.timestamp for record in model)
        assert (batch.base_offset, batch.last_offset) == (500, last_offset)
        assert batch.last_sequence == last_sequence
        assert batch.delete_horizon_ms == horizon_ms


@given(records=some_records, path=st.lists(codecs, min_size=1, max_size=4))
def test_recompressing_along_any_path_ends_where_it_began(
    records: list[Record], path: list[Compression]
) -> None:
    original = build_batch(records)
    batch = RecordBatch(memoryview(original))
    for codec in [*path, Compression.NONE]:
        batch = RecordBatch(memoryview(recompress(batch, codec)))
        batch.check_as_produced()
    assert batch.view == original
