"""Load straight on the wire: requests encoded beforehand, many in flight, answers counted by size.

The generator does next to nothing per request, so that the broker is what is measured. The size of
every answer is known in advance; a wrong one, or a wrong end offset, fails the measurement.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

import meter
import wire

BLOCK_BYTES = 256 * 1024
BLOCKS_IN_FLIGHT = 2
FETCHES_IN_FLIGHT = 4
FILL_SECONDS_MAX = 600.0
DISCARD_BYTES = 1024 * 1024
DISCARD = socket.MSG_TRUNC
"""On Linux a TCP receive with this flag drops the bytes in the kernel: a copy into this process
would cost more than the broker spends on sending them, and hide what is measured."""
ERROR_POSITION_FROM_END = struct.calcsize(">hqqq") + 4


@dataclass(frozen=True, slots=True)
class ProduceLoad:
    """What to produce, over how many connections, and when to stop."""

    topic: str
    batch: wire.Batch
    connections: int = 1
    seconds: float = 5.0
    bytes_max: int = 4_000_000_000


class ProducePipe:
    """One connection that keeps blocks of encoded requests in flight to its own partition."""

    def __init__(self, bootstrap: str, load: ProduceLoad, partition: int) -> None:
        body = wire.produce_body(load.topic, partition, load.batch)
        self.requests_per_block = max(1, BLOCK_BYTES // len(body))
        self.block = b"".join(
            wire.frame(wire.PRODUCE, number, body) for number in range(self.requests_per_block)
        )
        self._connection = wire.Connection(bootstrap)
        answers = wire.produce_answer_size(load.topic) * self.requests_per_block
        self._answers = memoryview(bytearray(answers))

    def send_block(self) -> None:
        self._connection.socket.sendall(self.block)

    def receive_block(self) -> None:
        """Wait for the answers of one block; its last one tells of an error."""
        self._connection.receive_into(self._answers)
        position = len(self._answers) - ERROR_POSITION_FROM_END
        (error,) = struct.unpack_from(">h", self._answers, position)
        if error:
            raise wire.BrokerAnswer(f"Produce answered error {error}")

    def close(self) -> None:
        self._connection.socket.close()


def produce(bootstrap: str, pid: int | None, load: ProduceLoad) -> meter.Figures:
    """Produce as fast as the broker takes it; the topic has a partition for each connection."""
    pipes = [ProducePipe(bootstrap, load, number) for number in range(load.connections)]
    with wire.Connection(bootstrap) as connection:
        before = _end_offsets(connection, load)
    block_bytes = len(pipes[0].block)
    blocks_max = max(1, load.bytes_max // block_bytes // len(pipes))
    metered = meter.Meter(pid)
    deadline = time.perf_counter() + load.seconds
    sent = received = 0
    while received < sent or not sent:
        while sent - received < BLOCKS_IN_FLIGHT and sent < blocks_max:
            if sent and time.perf_counter() > deadline:
                break
            for pipe in pipes:
                pipe.send_block()
            sent += 1
        for pipe in pipes:
            pipe.receive_block()
        received += 1
    figures = metered.stop()
    requests = sent * len(pipes) * pipes[0].requests_per_block
    for pipe in pipes:
        pipe.close()
    records = requests * load.batch.records
    _check_stored(bootstrap, load, before + records)
    stored = requests * len(load.batch.data)
    return meter.with_rates(figures, records=records, requests=requests, size_bytes=stored)


def _end_offsets(connection: wire.Connection, load: ProduceLoad) -> int:
    return sum(wire.end_offset(connection, load.topic, one) for one in range(load.connections))


def _check_stored(bootstrap: str, load: ProduceLoad, expected: int) -> None:
    with wire.Connection(bootstrap) as connection:
        found = _end_offsets(connection, load)
    if found != expected:
        raise wire.BrokerAnswer(f"the end offsets are {found} where {expected} were acknowledged")


def fill(bootstrap: str, topic: str, batch: wire.Batch, size_bytes: int) -> int:
    """Put about this many bytes into partition 0, unmetered; return the number of batches."""
    load = ProduceLoad(topic, batch, seconds=FILL_SECONDS_MAX, bytes_max=size_bytes)
    return int(produce(bootstrap, None, load)["records"]) // batch.records


@dataclass(frozen=True, slots=True)
class FetchLoad:
    """What to read: chunks of whole batches, at the given batch numbers, round and round."""

    topic: str
    batch: wire.Batch
    batches_per_chunk: int
    starts: list[int]
    seconds: float = 5.0


def fetch(bootstrap: str, pid: int | None, load: FetchLoad) -> meter.Figures:
    """Fetch as fast as the broker gives it, throwing the bytes away."""
    chunk_bytes = load.batches_per_chunk * len(load.batch.data)
    frames = [wire.frame(wire.FETCH, 1, _chunk_body(load, start)) for start in load.starts]
    discarded = memoryview(bytearray(DISCARD_BYTES))
    with wire.Connection(bootstrap) as connection:
        connection.socket.sendall(frames[0])
        expected = _receive_any(connection, discarded)
        if expected < chunk_bytes:
            raise wire.BrokerAnswer(f"a fetch of {chunk_bytes} bytes answered {expected}")
        head_bytes = expected - chunk_bytes
        metered = meter.Meter(pid)
        deadline = time.perf_counter() + load.seconds
        sent = received = size_bytes = 0
        while received < sent or not sent:
            while sent - received < FETCHES_IN_FLIGHT and (
                not sent or time.perf_counter() < deadline
            ):
                connection.socket.sendall(frames[sent % len(frames)])
                sent += 1
            size = _receive_any(connection, discarded)
            if not head_bytes < size <= expected:  # less where a segment of the log ends
                raise wire.BrokerAnswer(f"a fetch answered {size} bytes instead of {expected}")
            size_bytes += size - head_bytes
            received += 1
        figures = metered.stop()
    records = size_bytes // len(load.batch.data) * load.batch.records
    return meter.with_rates(figures, records=records, requests=received, size_bytes=size_bytes)


def _chunk_body(load: FetchLoad, start: int) -> bytes:
    chunk_bytes = load.batches_per_chunk * len(load.batch.data)
    wish = wire.FetchWish(load.topic, 0, start * load.batch.records, chunk_bytes)
    return wire.fetch_body(wish)


def _receive_any(connection: wire.Connection, discarded: memoryview) -> int:
    """Receive one answer of any size, keep nothing, return its size."""
    (size,) = struct.unpack(">i", connection.receive_exactly(4))
    left = size
    while left:
        count = connection.socket.recv_into(discarded, min(left, len(discarded)), DISCARD)
        if not count:
            raise wire.BrokerAnswer("the broker closed the connection")
        left -= count
    return int(size)


@dataclass(frozen=True, slots=True)
class LatencyLoad:
    """One request at a time, so many a second."""

    topic: str
    batch: wire.Batch
    per_second: int
    seconds: float = 5.0
    warm_up: int = 500


def produce_latency(bootstrap: str, pids: meter.Pids, load: LatencyLoad) -> meter.Figures:
    """Time from a Produce to its answer. A late answer counts against the ones it delays."""
    samples: list[float] = []
    interval = 1 / load.per_second
    body = wire.produce_body(load.topic, 0, load.batch)
    with wire.Connection(bootstrap) as connection:
        for _ in range(load.warm_up):
            wire.produced_offset(connection.request(wire.PRODUCE, body))
        metered = meter.Meter(pids)
        start = time.perf_counter()
        for number in range(int(load.per_second * load.seconds)):
            began = _wait_until(start + number * interval)
            answer = connection.request(wire.PRODUCE, body)
            samples.append(time.perf_counter() - began)
            wire.produced_offset(answer)
        figures = metered.stop()
    return figures | meter.percentiles_us(samples, "produce")


def delivery_latency(bootstrap: str, pid: int | None, load: LatencyLoad) -> meter.Figures:
    """Time from a Produce to its record in the answer of a fetch that was waiting for it."""
    samples: list[float] = []
    interval = 1 / load.per_second
    body = wire.produce_body(load.topic, 0, load.batch)
    total = load.warm_up + int(load.per_second * load.seconds)
    with wire.Connection(bootstrap) as producer, wire.Connection(bootstrap) as consumer:
        offset = wire.end_offset(producer, load.topic, 0)
        metered = meter.Meter(pid)
        start = time.perf_counter()
        for number in range(total):
            wish = wire.FetchWish(load.topic, 0, offset, 1 << 20, wait_ms=5000)
            consumer.send(wire.FETCH, wire.fetch_body(wish))
            began = _wait_until(start + number * interval)
            producer.send(wire.PRODUCE, body)
            fetched = wire.fetched_bytes(consumer.receive())
            samples.append(time.perf_counter() - began)
            wire.produced_offset(producer.receive())
            if fetched != len(load.batch.data):
                raise wire.BrokerAnswer(f"{fetched} bytes came instead of one record")
            offset += load.batch.records
        figures = metered.stop()
    return figures | meter.percentiles_us(samples[load.warm_up :], "delivery")


def _wait_until(due: float) -> float:
    """Wait for the moment; return it, or when the sleep was inexact, the moment after it."""
    now = time.perf_counter()
    if now >= due:
        return due
    time.sleep(due - now)
    return time.perf_counter()
