"""A record as a consumer hands it out, and whole batches of them made at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from ottla.clients.consumer.unreadable import UnreadableRecord
from ottla.errors import CorruptBatch
from ottla.model.ids import TopicPartition
from ottla.records import speed
from ottla.records.batch import LOG_APPEND_TIME_BIT, RecordBatch
from ottla.records.record import Headers
from ottla.records.rows import read_made


class ConsumerRecord(msgspec.Struct, frozen=True, gc=False):
    """One record with its place. Key and value are bytes unless there are deserializers."""

    topic: str
    partition: int
    leader_epoch: int
    timestamp_type: int
    """0: by the producer's clock; 1: by the broker's, when it was appended."""
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: Headers = ()


Deserialize = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How batches are made into records."""

    key: Deserialize | None = None
    value: Deserialize | None = None
    checks_crc: bool = True


def decode_batch(
    batch: RecordBatch, where: TopicPartition, start: int, how: Decoding
) -> list[ConsumerRecord]:
    """The records of a batch from offset `start` on, with keys and values as bytes."""
    if how.checks_crc and not batch.is_intact():
        raise CorruptBatch(f"{where}: the batch at offset {batch.base_offset} arrived damaged")
    records = _decode(batch, where)
    if batch.base_offset < start:
        records = [record for record in records if record.offset >= start]
    return records


def deserialize(records: list[ConsumerRecord], how: Decoding) -> list[ConsumerRecord]:
    """The records up to the first that cannot be; UnreadableRecord if there is none before it."""
    if how.key is None and how.value is None:
        return records
    made: list[ConsumerRecord] = []
    try:
        made.extend(_deserialized(record, how) for record in records)  # keeps those before
    except Exception as error:
        if not made:
            raise UnreadableRecord(records[0], error) from error
    return made


def _decode(batch: RecordBatch, where: TopicPartition) -> list[ConsumerRecord]:
    """Every record: by the compiled loop, else by the short one, else by the reference."""
    kind = 1 if batch.attributes & LOG_APPEND_TIME_BIT else 0
    make = partial(ConsumerRecord, where.topic, where.partition, batch.leader_epoch, kind)
    if speed.IS_ACCELERATED:
        return read_made(batch, make)
    try:
        records = _decode_plain(batch.payload(), batch, where) if kind == 0 else None
    except IndexError:
        records = None
    if records is None:
        return [make(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch.records()]
    return records


def _decode_plain(
    payload: bytes, batch: RecordBatch, where: TopicPartition
) -> list[ConsumerRecord] | None:
    """The common case, small numbers and no headers, in one loop without calls; None for others.

    A number n is stored as 2n, or -2n - 1 if negative: a length is half of what is stored, and an
    odd one stands for null.
    """
    topic, partition, epoch = where.topic, where.partition, batch.leader_epoch
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    records: list[ConsumerRecord] = []
    add = records.append
    position = 0
    for _ in range(batch.record_count):
        first = payload[position]
        if first < 0x80:
            end = position + 1 + (first >> 1)
            position += 2
        else:
            second = payload[position + 1]
            if second > 0x7F:
                return None
            end = position + 2 + ((first & 0x7F | second << 7) >> 1)
            position += 3
        stamp = payload[position]
        position += 1
        if stamp > 0x7F:
            stamp = stamp & 0x7F | payload[position] << 7
            position += 1
        delta = payload[position]
        position += 1
        if delta > 0x7F:
            delta = delta & 0x7F | payload[position] << 7
            position += 1
        size = payload[position]
        position += 1
        if size == 1:
            key = None
        elif size & 0x81 or (stamp | delta) & 1 or stamp > 0x3FFF or delta > 0x3FFF:
            return None
        else:
            start = position
            position += size >> 1
            key = payload[start:position]
        size = payload[position]
        position += 1
        value = None
        if size != 1:
            if size > 0x7F:
                size = size & 0x7F | payload[position] << 7
                position += 1
            start = position
            position += size >> 1
            value = payload[start:position]
        if payload[position] or position + 1 != end or stamp & 1 or (stamp | delta) > 0x3FFF:
            return None
        position = end
        offset, timestamp = base_offset + (delta >> 1), base_timestamp + (stamp >> 1)
        add(ConsumerRecord(topic, partition, epoch, 0, offset, timestamp, key, value))
    return records if position == len(payload) else None


def _deserialized(record: ConsumerRecord, how: Decoding) -> ConsumerRecord:
    key, value = record.key, record.value
    if key is not None and how.key is not None:
        key = how.key(key)
    if value is not None and how.value is not None:
        value = how.value(value)
    return ConsumerRecord(
        record.topic,
        record.partition,
        record.leader_epoch,
        record.timestamp_type,
        record.offset,
        record.timestamp_ms,
        key,
        value,
        record.headers,
    )
