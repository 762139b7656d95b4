"""Transaction markers."""

import pytest

from ottla.errors import InvalidRecord
from ottla.records.batch import CONTROL_BIT, RecordBatch
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, EndTransactionMarker, marker_batch, read_marker
from ottla.records.rewrite import empty_batch


def a_control_batch(key: bytes | None, value: bytes | None) -> RecordBatch:
    builder = BatchBuilder()
    builder.append(0, key, value)
    return RecordBatch(memoryview(builder.build(attributes=CONTROL_BIT)))


@pytest.mark.parametrize("kind", ControlType)
def test_a_marker_comes_back(kind: ControlType) -> None:
    marker = EndTransactionMarker(kind, coordinator_epoch=7)
    batch = RecordBatch(
        memoryview(marker_batch(marker, producer_id=5, producer_epoch=3, timestamp=99))
    )
    batch.check()
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 3, -1)
    assert (batch.max_timestamp, batch.record_count) == (99, 1)
    assert read_marker(batch) == marker


def test_a_marker_is_laid_out_as_the_format_says() -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, coordinator_epoch=0x01020304)
    batch = RecordBatch(
        memoryview(marker_batch(marker, producer_id=1, producer_epoch=0, timestamp=0))
    )
    (record,) = batch.records()
    assert record.key == bytes.fromhex("00000001")
    assert record.value == bytes.fromhex("000001020304")


def test_other_control_records_are_no_marker() -> None:
    assert read_marker(a_control_batch(bytes.fromhex("00000002"), b"whatever")) is None


def test_an_emptied_control_batch_has_no_marker() -> None:
    marker = EndTransactionMarker(ControlType.ABORT, coordinator_epoch=7)
    batch = RecordBatch(
        memoryview(marker_batch(marker, producer_id=5, producer_epoch=3, timestamp=99))
    )
    assert read_marker(RecordBatch(memoryview(empty_batch(batch)))) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, None), (b"\0\0\0", None), (b"\0\0\0\1", None), (b"\0\0\0\1", b"\0\0\0\0\0")],
)
def test_a_control_record_cut_short_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecord):
        read_marker(a_control_batch(key, value))
