"""Cutting a batch in two, when a broker finds it too large."""

from __future__ import annotations

import sys
import threading

from ottla.clients.producer.batch import ProducerBatch
from ottla.records.batch import RecordBatch
from ottla.records.record import encode_headers


def halves(batch: ProducerBatch) -> tuple[ProducerBatch, ProducerBatch]:
    """Two batches with the records of one, closed and not encoded, each knowing its parent."""
    assert batch.data is not None
    records = list(RecordBatch(memoryview(batch.data)).records())
    middle = len(records) // 2
    parts = []
    for start, end in ((0, middle), (middle, len(records))):
        part = ProducerBatch(batch.topic, batch.partition, batch.created)
        part.order = batch.order + start / len(records) * batch.order_step
        part.order_step = batch.order_step / 2
        part.parent = batch
        part.open(sys.maxsize, threading.Lock())
        assert part.records is not None
        for record in records[start:end]:
            headers = encode_headers(record.headers)
            part.records.append(record.timestamp, record.key, record.value, headers)
        part.close()
        part.callbacks = [(i - start, call) for i, call in batch.callbacks if start <= i < end]
        parts.append(part)
    return parts[0], parts[1]
