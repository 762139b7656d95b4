"""Expressions beside Python functions in the same topologies: records a second of CPU.

    python bench/streams_expressions.py [--records 200000] [--rounds 5]

No broker and no Spark: packets of JSON records go through what a Spark task does with them, without
state (filter, map_values, select_key, to) and in front of state (filter, map_values, a count by
key). CPU time of this process, so a busy machine does little harm; the best round counts. The
ratio is expressions over functions; both must give the same bytes. One JSON line a measurement.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow

from ottla.streams import KStream, StreamsBuilder, Topology, col, concat, fields, key
from ottla.streams.engine.records import InputRecord
from ottla.streams.engine.stores import MemoryStore
from ottla.streams.engine.task import Surroundings, Task
from ottla.streams.spark.compiled_columns import column_chains, packets_by_columns

PACKET_RECORDS = 10_000
COUNTS = {"payments": 4, "out": 4}
Run = Callable[[], Any]


def payments(count: int) -> list[InputRecord]:
    return [
        InputRecord(
            b"p%d" % number,
            json.dumps(
                {
                    "who": f"Ada{number % 1000}",
                    "amount": number % 100,
                    "note": "x" * 30,
                    "price": number * 0.37,
                    "ok": True,
                }
            ).encode(),
            1_700_000_000_000 + number,
            number,
        )
        for number in range(count)
    ]


def by_expressions(stream: KStream) -> KStream:
    large = stream.filter((col("amount") * 2 > 20) & col("who").is_not_null())
    named = fields(name=concat(key(), "-", col("who").lower()), amount=col("amount"))
    return large.map_values(named)


def by_functions(stream: KStream) -> KStream:
    def is_large(_: str, value: dict[str, Any]) -> bool:
        return value["amount"] * 2 > 20 and value["who"] is not None

    def named(key: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"{key}-{value['who'].lower()}", "amount": value["amount"]}

    return stream.filter(is_large).map_values(named, with_key=True)


KINDS = {"expressions": by_expressions, "functions": by_functions}


def without_state(kind: str, records: list[InputRecord]) -> Run:
    builder = StreamsBuilder()
    selector: Any = col("name") if kind == "expressions" else lambda _, value: value["name"]
    KINDS[kind](builder.stream("payments")).select_key(selector).to("out")
    topology = builder.build()
    packets = list(packed(records))
    chains = column_chains(topology, topology.subtopologies[0], "bench")

    def run() -> list[Any]:
        return [packets_by_columns(chains, "payments", packet, COUNTS) for packet in packets]

    return run


def in_front_of_state(kind: str, records: list[InputRecord]) -> Run:
    builder = StreamsBuilder()
    counted = KINDS[kind](builder.stream("payments")).group_by_key().count()
    counted.to_stream().to("out")
    topology = builder.build()

    def run() -> list[Any]:
        task = new_task(topology)
        task.process({"payments": records})
        return task.take_outputs()

    return run


def new_task(topology: Topology) -> Task:
    surroundings = Surroundings("bench", lambda _: MemoryStore(), COUNTS)
    return Task(topology, topology.subtopologies[0], 0, surroundings)


def packed(records: list[InputRecord]) -> Iterator[bytes]:
    """Packets as the data source of applications makes them."""
    headers = pyarrow.list_(
        pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
    )
    for first in range(0, len(records), PACKET_RECORDS):
        some = records[first : first + PACKET_RECORDS]
        batch = pyarrow.RecordBatch.from_arrays(
            [
                pyarrow.array([one.key for one in some], pyarrow.binary()),
                pyarrow.array([one.value for one in some], pyarrow.binary()),
                pyarrow.array([one.timestamp_ms for one in some], pyarrow.int64()),
                pyarrow.array([one.offset for one in some], pyarrow.int64()),
                pyarrow.nulls(len(some), headers),
            ],
            names=["key", "value", "timestamp", "offset", "headers"],
        )
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield bytes(sink.getvalue())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    records = payments(options.records)
    for what, make in {"without state": without_state, "with state": in_front_of_state}.items():
        runs = {kind: make(kind, records) for kind in KINDS}
        results = {kind: run() for kind, run in runs.items()}
        if results["expressions"] != results["functions"]:
            print(f"{what}: expressions and functions give different results")
            return 1
        rates = {kind: rate(run, options) for kind, run in runs.items()}
        ratio = round(rates["expressions"] / rates["functions"], 2)
        print(json.dumps({"what": what, "records_per_cpu_s": rates, "ratio": ratio}), flush=True)
    return 0


def rate(run: Run, options: argparse.Namespace) -> int:
    best = float("inf")
    for _ in range(options.rounds):
        begun = time.process_time()
        run()
        best = min(best, time.process_time() - begun)
    return round(int(options.records) / best)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
