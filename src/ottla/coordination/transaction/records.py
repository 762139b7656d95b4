"""The records of __transaction_state as bytes, in Kafka's own format, and back.

A transaction of the first version of the protocol is written in version 0 of the record, which
old tools read; what only version 1 can say (other producer ids, the client's version) in version 1.
Where not all brokers can read that, it is left out: a producer that did not get the answer to its
last request is fenced then, as by the programs of that time.
"""

from __future__ import annotations

import struct
from itertools import groupby
from typing import Final

from ottla.coordination.decision import NewRecord
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import FIRST_VERSION, Producer, Transaction
from ottla.errors import ProtocolError, Truncated, UnsupportedVersion
from ottla.model.ids import NO_PRODUCER_ID, ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

_PREFIX: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
VALUE_VERSION_MAX: Final = 1


def record_of(transaction: Transaction, version_max: int = VALUE_VERSION_MAX) -> NewRecord:
    """The record that says where the transaction stands now."""
    version = min(1 if _needs_tags(transaction) else 0, version_max)
    value = _PREFIX.pack(version) + encode(_value_of(transaction), version)
    return NewRecord(_key_of(transaction.transactional_id), value)


def tombstone_of(transactional_id: str) -> NewRecord:
    """The record that forgets a transactional id."""
    return NewRecord(_key_of(transactional_id), None)


def transactional_id_of(key: bytes) -> str | None:
    """Whose record this is; none if it is a kind of record that a later version may have added."""
    if _prefix_of(key) != _KEY_VERSION:
        return None
    return decode(TransactionLogKey, key[_PREFIX.size :], _KEY_VERSION).transactional_id


def transaction_of(transactional_id: str, value: bytes) -> Transaction:
    """The transaction that a record's value describes."""
    version = _prefix_of(value)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise UnsupportedVersion("TransactionLogValue", version)
    fields = decode(TransactionLogValue, value[_PREFIX.size :], version)
    producer = _producer(fields.producer_id, fields.producer_epoch)
    return Transaction(
        transactional_id,
        producer,
        fields.transaction_timeout_ms,
        fields.transaction_last_update_timestamp_ms,
        _state_of(fields.transaction_status),
        _next_of(fields),
        ProducerId(fields.previous_producer_id),
        frozenset(
            TopicPartition(topic.topic, partition)
            for topic in fields.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        fields.transaction_start_timestamp_ms,
        fields.client_transaction_version,
    )


def _key_of(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _PREFIX.pack(_KEY_VERSION) + encode(key, _KEY_VERSION)


def _needs_tags(transaction: Transaction) -> bool:
    return (
        transaction.previous_producer_id != NO_PRODUCER_ID
        or transaction.next_producer is not None
        or transaction.client_version != FIRST_VERSION
    )


def _value_of(transaction: Transaction) -> TransactionLogValue:
    following = transaction.next_producer
    return TransactionLogValue(
        producer_id=transaction.producer.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=following.producer_id if following else NO_PRODUCER_ID,
        producer_epoch=transaction.producer.epoch,
        next_producer_epoch=following.epoch if following else -1,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_topics_of(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )


def _topics_of(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is State.EMPTY:
        return None
    by_topic = groupby(sorted(transaction.partitions), key=lambda partition: partition.topic)
    return [
        PartitionsSchema(topic=topic, partition_ids=[each.partition for each in partitions])
        for topic, partitions in by_topic
    ]


def _next_of(fields: TransactionLogValue) -> Producer | None:
    if fields.next_producer_id == NO_PRODUCER_ID:
        return None
    # A writer that does not know the epoch's field only ever stores a fresh producer id.
    return _producer(fields.next_producer_id, max(fields.next_producer_epoch, 0))


def _producer(producer_id: int, epoch: int) -> Producer:
    return Producer(ProducerId(producer_id), ProducerEpoch(epoch))


def _state_of(number: int) -> State:
    try:
        return State(number)
    except ValueError:
        raise ProtocolError(f"{number} is not the state of a transaction") from None


def _prefix_of(data: bytes) -> int:
    if len(data) < _PREFIX.size:
        raise Truncated("TransactionLog", len(data))
    prefix: int = _PREFIX.unpack_from(data)[0]
    return prefix
