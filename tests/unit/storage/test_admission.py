"""What is let into a log, and what is changed on the way in."""

from __future__ import annotations

import pytest

from ottla.errors import InvalidRecord, InvalidTimestamp, OffsetOutOfRange
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp
from ottla.records.compression import Compression
from ottla.records.message_set import LegacyMessage, encode_message
from ottla.storage.admission import AdmissionRules, admit, check_replicated
from ottla.storage.producer_state import Origin
from unit.storage.logs import NOW_MS, a_log, batch, settings, values


def admitted(records: memoryview, **changes: object) -> list[RecordBatch]:
    rules = AdmissionRules(settings(**changes))
    return admit(records, rules, NOW_MS, Origin.CLIENT)[1]


def test_what_needs_no_change_is_not_copied():
    sent = batch(b"a")
    rules = AdmissionRules(settings())
    data, (found,) = admit(sent, rules, NOW_MS, Origin.CLIENT)
    assert data is sent
    assert found.view is sent


def test_records_of_an_old_format_are_converted():
    log = a_log()
    message = LegacyMessage(magic=1, offset=0, timestamp=NOW_MS, key=b"k", value=b"old")
    log.append(memoryview(bytearray(encode_message(message))), leader_epoch=0)
    assert values(log) == {0: b"old"}


def test_a_producer_sends_one_batch_at_a_time():
    two = bytearray()
    for sequence in range(2):
        two += batch(b"a", producer=ProducerStamp(7, 0, sequence))
    with pytest.raises(InvalidRecord):
        admitted(memoryview(two))


def test_a_client_may_not_claim_the_brokers_time():
    sent = RecordBatch(batch(b"a"))
    sent.set_append_time(NOW_MS)
    with pytest.raises(InvalidTimestamp):
        admitted(sent.view)
    (found,) = admitted(sent.view, message_timestamp_type="LogAppendTime")
    assert found.max_timestamp == NOW_MS


def test_records_without_a_time_are_accepted():
    assert admitted(batch(b"a", timestamp=-1), message_timestamp_before_max_ms=10)


@pytest.mark.parametrize("codec", Compression)
def test_a_batch_under_the_topics_codec_is_kept_as_it_came(codec: Compression):
    name = "uncompressed" if codec is Compression.NONE else codec.name.lower()
    sent = batch(b"abc" * 50, compression=codec)
    (found,) = admitted(sent, compression_type=name)
    assert found.view is sent


@pytest.mark.parametrize("codec", Compression)
def test_a_batch_under_another_codec_is_recompressed(codec: Compression):
    name = "uncompressed" if codec is Compression.NONE else codec.name.lower()
    other = Compression.GZIP if codec is not Compression.GZIP else Compression.NONE
    sent = batch(b"abc" * 50, compression=other, producer=ProducerStamp(7, 1, 2))
    (found,) = admitted(sent, compression_type=name)
    assert found.compression is codec
    assert found.is_intact()
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 1, 2)
    assert [record.value for record in found.records()] == [b"abc" * 50]


def test_a_leaders_batches_must_not_go_back():
    first, second = RecordBatch(batch(b"a")), RecordBatch(batch(b"b"))
    first.assign(5, 0)
    second.assign(5, 0)
    both = memoryview(bytes(first.view) + bytes(second.view))
    assert len(check_replicated(first.view, 5)) == 1
    with pytest.raises(OffsetOutOfRange):
        check_replicated(both, 5)
    with pytest.raises(OffsetOutOfRange):
        check_replicated(first.view, 6)
