"""Ottla's Spark connector beside Spark's own Kafka connector: rows a second, and the same rows.

    python bench/spark_connectors.py --jars DIR [--rows 1000000] [--size 100] [--rounds 3]

DIR holds the jars of Spark's connector: spark-sql-kafka-0-10, spark-token-provider-kafka-0-10,
kafka-clients and commons-pool2, of versions that go with the PySpark that is installed. Without
--jars only ours is measured. Both run in one Spark session against one broker, in turn; a round's
first figure includes Python and code warming up, so the best of the rounds is shown beside all.
Reads end in Spark's noop sink. One JSON line a measurement.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import ottla
import ottla.spark
from ottla.testing import ChildBroker

PARTITIONS = 4
OURS = "ottla"
THEIRS = "kafka"


def rows(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Keys and values of `size` bytes, made by Spark without Python."""
    return spark.range(count, numPartitions=PARTITIONS).selectExpr(
        "CAST(CAST(id AS STRING) AS BINARY) AS key",
        f"CAST(rpad(CAST(id AS STRING), {size}, 'x') AS BINARY) AS value",
    )


def load(spark: SparkSession, name: str, bootstrap: str, topic: str) -> DataFrame:
    return (
        spark.read.format(name)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
    )


def save(frame: DataFrame, name: str, bootstrap: str, topic: str, delivery: str = "") -> None:
    writer = frame.write.format(name).mode("append").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", bootstrap)
    (writer.option("delivery", delivery) if delivery else writer).save()


def copy_stream(
    spark: SparkSession, name: str, bootstrap: str, topics: tuple[str, str], delivery: str = ""
) -> None:
    """One topic into another by a streaming query that ends with what is there."""
    source = (
        spark.readStream.format(name)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topics[0])
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = (
            source.writeStream.format(name)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topics[1])
            .option("checkpointLocation", checkpoint)
        )
        writer = writer.option("delivery", delivery) if delivery else writer
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()


def fingerprint(frame: DataFrame) -> tuple[int, str]:
    """The same for the same rows, in whatever order they come."""
    columns = ", ".join(["key", "value", "topic", "partition", "offset", "timestamp"])
    row = frame.selectExpr("count(*) AS n", f"sum(CAST(xxhash64({columns}) AS DECIMAL(38))) AS h")
    found = row.collect()[0]
    return found.n, str(found.h)


class Bench:
    """Measures the same action with each connector."""

    def __init__(self, arguments: argparse.Namespace, names: list[str]) -> None:
        self.arguments = arguments
        self.names = names
        self._topics = 0

    def new_topic(self, bootstrap: str) -> str:
        self._topics += 1
        name = f"bench-{self._topics}"
        with ottla.Admin(bootstrap) as admin:
            admin.create_topics(ottla.NewTopic(name, PARTITIONS))
        return name

    def measure(self, what: str, actions: Mapping[str, Callable[[], None]]) -> None:
        """Each action in turn, round by round."""
        seconds: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(self.arguments.rounds):
            for name, action in actions.items():
                begun = time.perf_counter()
                action()
                seconds[name].append(time.perf_counter() - begun)
        for name, taken in seconds.items():
            figures = [round(self.arguments.rows / each) for each in taken]
            line = {"what": what, "connector": name, "rows_per_s": max(figures), "all": figures}
            print(json.dumps(line), flush=True)


def run(spark: SparkSession, bootstrap: str, bench: Bench) -> None:
    count, size = bench.arguments.rows, bench.arguments.size
    frame = rows(spark, count, size)
    filled = bench.new_topic(bootstrap)
    save(frame, OURS, bootstrap, filled)

    def read(name: str) -> None:
        load(spark, name, bootstrap, filled).write.format("noop").mode("overwrite").save()

    def write(name: str, *delivery: str) -> None:
        save(frame, name, bootstrap, bench.new_topic(bootstrap), *delivery)

    def copy(name: str, *delivery: str) -> None:
        topics = (filled, bench.new_topic(bootstrap))
        copy_stream(spark, name, bootstrap, topics, *delivery)

    def at_least_once(name: str) -> str:
        return "at-least-once" if name == OURS else ""

    bench.measure("read", {name: partial(read, name) for name in bench.names})
    writes = {name: partial(write, name) for name in bench.names}
    writes["ottla exactly-once"] = partial(write, OURS, "exactly-once")
    bench.measure("write", writes)
    streams = {name: partial(copy, name, at_least_once(name)) for name in bench.names}
    streams["ottla exactly-once"] = partial(copy, OURS)
    bench.measure("stream copy", streams)
    prints = {name: fingerprint(load(spark, name, bootstrap, filled)) for name in bench.names}
    same = len(set(prints.values())) == 1
    print(json.dumps({"what": "same rows", "rows": prints[OURS][0], "equal": same}), flush=True)
    assert same, prints


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jars", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bootstrap", help="a broker that runs; else one is started")
    arguments = parser.parse_args()
    jars = sorted(arguments.jars.glob("*.jar")) if arguments.jars else []
    names = [OURS, THEIRS] if jars else [OURS]
    settings = {"spark.jars": ",".join(str(jar) for jar in jars)} if jars else {}
    spark = ottla.spark.session("bench", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if arguments.bootstrap:
            run(spark, arguments.bootstrap, Bench(arguments, names))
            return
        with ChildBroker() as broker:
            run(spark, broker.bootstrap_servers, Bench(arguments, names))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
