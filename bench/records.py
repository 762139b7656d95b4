"""How fast batches become records, rows and Arrow tables, and back, in one thread without a broker.

    python bench/records.py [--seconds 0.5]

Each line runs as Python and, where they were built, with the compiled loops; the figure is the best
of the runs that fit in the time, in millions of records per second of the thread's CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ottla.clients.producer.batch import ProducerBatch
from ottla.records import speed
from ottla.records.arrow_decode import decode_batches
from ottla.records.arrow_encode import TableEncoding, encode_table
from ottla.records.batch import RecordBatch
from ottla.records.builder import build_batch
from ottla.records.compression import Compression
from ottla.records.record import Record
from ottla.records.rows import read_records, read_rows

KEY_BYTES = 10
TOTAL_BYTES = 4_000_000
LOCK = threading.Lock()


@dataclass(frozen=True)
class Load:
    """Records of one size in batches of one size."""

    value_bytes: int
    batch_bytes: int
    compression: Compression

    def __str__(self) -> str:
        batch = f"{self.batch_bytes // 1000} KB batches"
        return f"{KEY_BYTES + self.value_bytes} B, {batch}, {self.compression.config_name}"


LOADS = (
    Load(90, 1_000_000, Compression.NONE),
    Load(90, 16_000, Compression.NONE),
    Load(90, 1_000_000, Compression.LZ4),
    Load(990, 1_000_000, Compression.NONE),
)


@dataclass(frozen=True)
class Prepared:
    """A load's records in every form."""

    load: Load
    groups: list[list[Record]]
    batches: list[RecordBatch]
    table: Any

    @property
    def count(self) -> int:
        return sum(map(len, self.groups))


def prepare(load: Load) -> Prepared:
    """Make the records and everything that is made of them."""
    record_bytes = KEY_BYTES + load.value_bytes + 10
    count = TOTAL_BYTES // record_bytes
    value = bytes(range(64, 127)) * 20
    records = [
        Record(
            offset,
            1_700_000_000_000 + offset // 10,
            b"key %06d" % offset,
            value[offset % 63 :][: load.value_bytes],
        )
        for offset in range(count)
    ]
    step = max(load.batch_bytes // record_bytes, 1)
    groups = [records[first : first + step] for first in range(0, count, step)]
    batches = [
        RecordBatch(
            memoryview(
                build_batch(group, base_offset=group[0].offset, compression=load.compression)
            )
        )
        for group in groups
    ]
    return Prepared(load, groups, batches, decode_batches(batches, 0))


def encode_arrow(prepared: Prepared) -> None:
    load = prepared.load
    encoding = TableEncoding(batch_bytes=load.batch_bytes, compression=load.compression)
    for _ in encode_table(prepared.table, 0, encoding):
        pass


def encode_rows(prepared: Prepared) -> None:
    """As a producer does, which gathers them one by one."""
    for group in prepared.groups:
        batch = ProducerBatch("topic", 0, 0.0)
        batch.open(sys.maxsize, LOCK)
        add = batch.add
        for record in group:
            add(record.timestamp, record.key, record.value)
        batch.close()
        batch.encode(prepared.load.compression, None)


def encode_records(prepared: Prepared) -> None:
    for group in prepared.groups:
        build_batch(group, compression=prepared.load.compression)


WORK: dict[str, Callable[[Prepared], object]] = {
    "decode one by one": lambda prepared: [list(batch.records()) for batch in prepared.batches],
    "decode to records": lambda prepared: [read_records(batch) for batch in prepared.batches],
    "decode to tuples": lambda prepared: [read_rows(batch) for batch in prepared.batches],
    "decode to Arrow": lambda prepared: decode_batches(prepared.batches, 0),
    "encode one by one": encode_records,
    "encode rows": encode_rows,
    "encode Arrow": encode_arrow,
}


def best_rate(work: Callable[[Prepared], object], prepared: Prepared, seconds: float) -> float:
    """Millions of records per second of CPU time."""
    best = float("inf")
    spent = 0.0
    while spent < seconds:
        started = time.thread_time()
        work(prepared)
        taken = time.thread_time() - started
        best = min(best, taken)
        spent += max(taken, 1e-6)
    return prepared.count / best / 1e6


def ways() -> Iterator[tuple[str, ModuleType, ModuleType]]:
    """The loops as Python and, if this installation has them, compiled."""
    package = "ottla.records.accelerated"
    for name, suffix in (("Python", ""), ("compiled", "_compiled")):
        try:
            decoding = importlib.import_module(f"{package}.decoding{suffix}")
            encoding = importlib.import_module(f"{package}.encoding{suffix}")
        except ImportError:
            continue
        yield name, decoding, encoding


def main(arguments: list[str]) -> int:
    """Measure everything and print a table for each load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each line runs")
    options = parser.parse_args(arguments)
    available = list(ways())
    for load in LOADS:
        prepared = prepare(load)
        print(f"\n{load}: M records/s\n{'':<20}", *(f"{name:>10}" for name, *_ in available))
        for title, work in WORK.items():
            rates = []
            for _, decoding, encoding in available:
                is_compiled = decoding.IS_COMPILED
                chosen = {"decoding": decoding, "encoding": encoding, "IS_ACCELERATED": is_compiled}
                vars(speed).update(chosen)
                rates.append(best_rate(work, prepared, options.seconds))
            print(f"{title:<20}", *(f"{rate:10.2f}" for rate in rates), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
