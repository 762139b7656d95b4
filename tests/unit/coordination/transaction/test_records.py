"""The records of __transaction_state."""

import pytest

from ottla.coordination.transaction.records import (
    record_of,
    tombstone_of,
    transaction_of,
    transactional_id_of,
)
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import SECOND_VERSION, Transaction
from ottla.errors import ProtocolError
from ottla.model.ids import ProducerId
from unit.coordination.transaction.coordinator import A0, A1, B0, ID, pair

OLD = Transaction(
    ID, pair(5, 3), 60_000, 2_000, State.ONGOING, partitions=frozenset({A0, B0}), started_ms=1_000
)
NEW = Transaction(
    ID,
    pair(5, 32767),
    60_000,
    2_000,
    State.PREPARE_COMMIT,
    pair(9, 0),
    ProducerId(5),
    frozenset({A0, A1, B0}),
    1_000,
    SECOND_VERSION,
)
FRESH = Transaction(ID, pair(5, 0), 60_000, 2_000)


@pytest.mark.parametrize("transaction", [OLD, NEW, FRESH])
def test_a_transaction_comes_back_from_its_record(transaction):
    record = record_of(transaction)
    assert transactional_id_of(record.key) == ID
    assert transaction_of(ID, record.value) == transaction


def test_the_key_is_a_type_and_the_transactional_id():
    assert record_of(OLD).key == b"\x00\x00" + b"\x00\x09" + b"transfers"


def test_the_first_protocol_is_written_in_the_first_version_of_the_value():
    assert record_of(OLD).value[:2] == b"\x00\x00"
    assert record_of(FRESH).value[:2] == b"\x00\x00"


def test_what_needs_tags_is_written_in_the_flexible_version():
    assert record_of(NEW).value[:2] == b"\x00\x01"


def test_where_not_all_brokers_read_tags_none_are_written():
    record = record_of(NEW, 0)
    assert record.value[:2] == b"\x00\x00"
    read = transaction_of(ID, record.value)
    assert (read.producer, read.state, read.partitions) == (NEW.producer, NEW.state, NEW.partitions)
    assert read.next_producer is None


def test_a_fresh_id_has_null_partitions():
    assert record_of(FRESH).value == bytes.fromhex(
        "0000"  # version
        "0000000000000005"  # producer id
        "0000"  # epoch
        "0000ea60"  # time-out
        "00"  # state
        "ffffffff"  # partitions
        "00000000000007d0"  # updated
        "ffffffffffffffff"  # started
    )


def test_a_tombstone_has_the_same_key_and_no_value():
    assert tombstone_of(ID).key == record_of(OLD).key
    assert tombstone_of(ID).value is None


def test_a_next_producer_without_an_epoch_starts_at_zero():
    record = record_of(NEW)
    without_epoch = record.value.replace(b"\x03\x02\x00\x00", b"")  # tag 3, two bytes, epoch 0
    count = record.value.index(b"\x04\x00\x08")  # four tags follow; the first is tag 0 of 8 bytes
    without_epoch = without_epoch[:count] + b"\x03" + without_epoch[count + 1 :]
    assert transaction_of(ID, without_epoch) == NEW


def test_a_record_of_an_unknown_kind_is_nobodys():
    assert transactional_id_of(b"\x00\x63whatever") is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00",
        b"\x00\x02" + bytes(40),
        b"\xff\xff" + bytes(40),
        record_of(FRESH).value[:20],
        record_of(FRESH).value[:16] + b"\x09" + record_of(FRESH).value[17:],
    ],
)
def test_a_damaged_value_is_refused(value):
    with pytest.raises(ProtocolError):
        transaction_of(ID, value)
