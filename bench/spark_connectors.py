"""Ottla's Spark connector beside Spark's own Kafka connector: rows a second, and the same rows.

    python bench/spark_connectors.py --jars DIR [--rows 1000000] [--size 100] [--rounds 3]

DIR holds the jars of Spark's connector: spark-sql-kafka-0-10, spark-token-provider-kafka-0-10,
kafka-clients and commons-pool2, of versions that go with the PySpark that is installed. Without
--jars only ours is measured. Both run in one Spark session against one broker, in turn; a round's
first figure includes Python and code warming up, so the best of the rounds is shown beside all.
Reads end in Spark's noop sink. One JSON line a measurement: rows a second, and the CPU time of
Spark with its Python workers for each row, which other work on the machine disturbs less. Then a
line with the ratios, where more than 1 means that ours is faster or takes less CPU.

Both connectors must read the same rows, column by column at each offset, and what each has written
must be the same rows in the same partitions: else this ends with an error.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from meter import cpu_seconds
from pyspark.sql import DataFrame, SparkSession

import ottla
import ottla.spark
from ottla.testing import ChildBroker

PARTITIONS = 4
OURS = "ottla"
THEIRS = "kafka"
EXACTLY_ONCE = "ottla exactly-once"
READ_COLUMNS = ("key", "value", "timestamp", "timestampType", "headers")
"""What must be equal at each offset of each partition."""


def rows(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Keys and values of `size` bytes, made by Spark without Python."""
    return spark.range(count, numPartitions=PARTITIONS).selectExpr(
        "CAST(CAST(id AS STRING) AS BINARY) AS key",
        f"CAST(rpad(CAST(id AS STRING), {size}, 'x') AS BINARY) AS value",
    )


def load(spark: SparkSession, name: str, bootstrap: str, topic: str, headers: str) -> DataFrame:
    return (
        spark.read.format(name)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", headers)
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


def differences(ours: DataFrame, theirs: DataFrame) -> int:
    """At how many offsets the two frames are not the same, in all columns of a read."""
    place = ["topic", "partition", "offset"]
    mine = ours.selectExpr(*place, f"struct({', '.join(READ_COLUMNS)}) AS mine")
    others = theirs.selectExpr(*place, f"struct({', '.join(READ_COLUMNS)}) AS others")
    both = mine.join(others, place, "full_outer")
    return both.where("mine IS NULL OR others IS NULL OR NOT mine <=> others").count()


def unequal_rows(one: DataFrame, other: DataFrame) -> int:
    """How many rows one frame has and the other has not, counting each as often as it is there."""
    columns = ["partition", "key", "value"]
    one, other = one.select(*columns), other.select(*columns)
    return one.exceptAll(other).count() + other.exceptAll(one).count()


class Bench:
    """Measures the same action with each connector."""

    def __init__(self, arguments: argparse.Namespace, names: list[str], spark_pid: int) -> None:
        self.arguments = arguments
        self.names = names
        self._spark_pid = spark_pid
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
        cpu: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(self.arguments.rounds):
            for name, action in actions.items():
                begun, cpu_before = time.perf_counter(), cpu_seconds(self._spark_pid)
                action()
                seconds[name].append(time.perf_counter() - begun)
                cpu[name].append(cpu_seconds(self._spark_pid) - cpu_before)
        count = self.arguments.rows
        for name in actions:
            line = {
                "what": what,
                "connector": name,
                "rows_per_s": round(count / min(seconds[name])),
                "cpu_us_per_row": round(min(cpu[name]) / count * 1e6, 2),
                "all": [round(count / each) for each in seconds[name]],
                "all_cpu_us": [round(each / count * 1e6, 2) for each in cpu[name]],
            }
            print(json.dumps(line), flush=True)
        for name in actions.keys() - {THEIRS} if THEIRS in actions else ():
            speed = min(seconds[THEIRS]) / min(seconds[name])
            thrift = min(cpu[THEIRS]) / min(cpu[name])
            ratios = {"speed": round(speed, 2), "cpu": round(thrift, 2)}
            print(json.dumps({"what": f"{what}, {name} : {THEIRS}", **ratios}), flush=True)


class Run:
    """The measurements, on topics of one broker."""

    def __init__(self, spark: SparkSession, bootstrap: str, bench: Bench) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.bench = bench
        self.frame = rows(spark, bench.arguments.rows, bench.arguments.size)
        self.written: dict[str, str] = {}
        """The topic that each connector has written last."""
        self.filled = bench.new_topic(bootstrap)

    def everything(self) -> None:
        names = self.bench.names
        save(self.frame, OURS, self.bootstrap, self.filled)
        self.bench.measure("read", {name: partial(self._read, name) for name in names})
        writes = {name: partial(self._write, name, name) for name in names}
        writes[EXACTLY_ONCE] = partial(self._write, EXACTLY_ONCE, OURS, "exactly-once")
        self.bench.measure("write", writes)
        self._compare_written("written rows")
        streams = {name: partial(self._copy, name, name, _at_least_once(name)) for name in names}
        streams[EXACTLY_ONCE] = partial(self._copy, EXACTLY_ONCE, OURS)
        self.bench.measure("stream copy", streams)
        self._compare_written("copied rows")
        if THEIRS in names:
            self._compare_read()

    def _read(self, name: str) -> None:
        self._load(name, self.filled, "false").write.format("noop").mode("overwrite").save()

    def _write(self, label: str, name: str, *delivery: str) -> None:
        self.written[label] = self.bench.new_topic(self.bootstrap)
        save(self.frame, name, self.bootstrap, self.written[label], *delivery)

    def _copy(self, label: str, name: str, *delivery: str) -> None:
        self.written[label] = self.bench.new_topic(self.bootstrap)
        topics = (self.filled, self.written[label])
        copy_stream(self.spark, name, self.bootstrap, topics, *delivery)

    def _load(self, name: str, topic: str, headers: str) -> DataFrame:
        return load(self.spark, name, self.bootstrap, topic, headers)

    def _compare_written(self, what: str) -> None:
        """What each has written is what was to be written, each row once, in the same partition."""
        expected = self._load(OURS, self.filled, "false").cache()
        for label, topic in self.written.items():
            found = unequal_rows(expected, self._load(OURS, topic, "false"))
            _report(f"{what} of {label}", self.bench.arguments.rows, found)
        expected.unpersist()

    def _compare_read(self) -> None:
        """Both read the same, headers and times and all."""
        with_headers = self.bench.new_topic(self.bootstrap)
        some = self.frame.selectExpr(
            "key",
            "IF(length(key) % 3 = 0, NULL, value) AS value",
            "IF(length(key) % 2 = 0, array(named_struct('key', 'h', 'value', key)), NULL) headers",
            "timestamp_millis(1700000000000 + CAST(CAST(key AS STRING) AS BIGINT)) AS timestamp",
        )
        save(some, OURS, self.bootstrap, with_headers)
        for topic in (self.filled, with_headers):
            frames = [self._load(name, topic, "true") for name in (OURS, THEIRS)]
            _report("rows read by both", frames[0].count(), differences(*frames))


def _at_least_once(name: str) -> str:
    return "at-least-once" if name == OURS else ""


def _report(what: str, count: int, different: int) -> None:
    line = {"what": what, "rows": count, "different": different}
    print(json.dumps(line), flush=True)
    if different:
        raise SystemExit(f"{what}: {different} are not the same")


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
    bench = Bench(arguments, names, spark_pid(spark))
    try:
        if arguments.bootstrap:
            Run(spark, arguments.bootstrap, bench).everything()
            return
        with ChildBroker() as broker:
            Run(spark, broker.bootstrap_servers, bench).everything()
    finally:
        spark.stop()


def spark_pid(spark: SparkSession) -> int:
    """The process of Spark's JVM, whose descendants are its Python workers."""
    jvm = spark.sparkContext._jvm  # PySpark has no other way to it
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


if __name__ == "__main__":
    main()
