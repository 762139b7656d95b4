"""Streaming queries on a real Spark: from a topic, into a topic, stopped and started again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import BinaryType

import ottla
import ottla.spark
from ottla.model.ids import TopicPartition
from spark.topics import fill, make_topic, options, rows_of, values_of
from support.eventually import eventually

NewName = Callable[[], str]
WAIT_S = 240


def stream(spark: SparkSession, bootstrap: str, **named: str) -> DataFrame:
    named = {"startingOffsets": "earliest", **named}
    return spark.readStream.format("ottla").options(**options(bootstrap, **named)).load()


def run_once(frame: DataFrame, bootstrap: str, checkpoint: Path, **named: str) -> StreamingQuery:
    """Writes what is there now, and ends."""
    query = (
        frame.writeStream.format("ottla")
        .options(**options(bootstrap, **named))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(WAIT_S), "the query does not end"
    finally:
        query.stop()
    return query


def committed(bootstrap: str, group: str) -> dict[int, int]:
    with ottla.Admin(bootstrap) as admin:
        return {row.partition.partition: int(row.committed or 0) for row in admin.group_lag(group)}


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_query_goes_on_where_it_stopped(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path, delivery: str
) -> None:
    source = make_topic(bootstrap, new_name())
    target = make_topic(bootstrap, new_name())
    frame = stream(spark, bootstrap, subscribe=source).select("key", "value")
    expected: list[bytes] = []
    for life in range(2):
        values = [b"%d/%d" % (life, number) for number in range(50)]
        fill(bootstrap, source, values, partition=life)
        expected += values
        run_once(frame, bootstrap, tmp_path, topic=target, delivery=delivery)
        assert sorted(values_of(bootstrap, target)) == sorted(expected)


def test_micro_batches_are_limited_and_the_group_sees_each_that_is_finished(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source = make_topic(bootstrap, new_name())
    target = make_topic(bootstrap, new_name())
    fill(bootstrap, source, [b"a"] * 70, partition=0)
    fill(bootstrap, source, [b"b"] * 30, partition=1)
    group = new_name()
    frame = stream(
        spark, bootstrap, subscribe=source, maxOffsetsPerTrigger="40", **{"group.id": group}
    )
    query = run_once(frame.select("value"), bootstrap, tmp_path, topic=target)
    batches = [progress.numInputRows for progress in query.recentProgress]
    assert batches == [40, 40, 20]
    assert json.loads(query.recentProgress[-1].sources[0].endOffset) == {source: {"0": 70, "1": 30}}
    assert json.loads(query.recentProgress[0].sources[0].latestOffset) == {
        source: {"0": 70, "1": 30}
    }
    assert committed(bootstrap, group) == {0: 70, 1: 30}
    assert len(values_of(bootstrap, target)) == 100


def test_new_partitions_and_topics_are_read_from_their_beginning(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    stem = new_name()
    first = make_topic(bootstrap, f"{stem}.a", 1)
    target = make_topic(bootstrap, new_name())
    frame = stream(spark, bootstrap, subscribePattern=stem + r"\..").select("value")
    fill(bootstrap, first, [b"1"])
    run_once(frame, bootstrap, tmp_path, topic=target)

    with ottla.Admin(bootstrap) as admin:
        admin.add_partitions(first, 2)
    fill(bootstrap, first, [b"2"], partition=1)
    fill(bootstrap, make_topic(bootstrap, f"{stem}.b", 1), [b"3"])
    run_once(frame, bootstrap, tmp_path, topic=target)

    assert sorted(values_of(bootstrap, target)) == [b"1", b"2", b"3"]


def test_a_running_query_takes_up_what_comes_and_waits_for_enough(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source = make_topic(bootstrap, new_name(), 1)
    target = make_topic(bootstrap, new_name(), 1)
    group = new_name()
    frame = stream(
        spark, bootstrap, subscribe=source, minOffsetsPerTrigger="10", **{"group.id": group}
    ).select("value")
    query = (
        frame.writeStream.format("ottla")
        .options(**options(bootstrap, topic=target, checkpointLocation=str(tmp_path)))
        .start()
    )
    try:
        fill(bootstrap, source, [b"early"] * 4)
        eventually(
            lambda: "Waiting for data" in query.status["message"] or None,
            "an idle query",
            timeout_seconds=WAIT_S,
        )
        assert values_of(bootstrap, target) == []
        fill(bootstrap, source, [b"late"] * 6)
        eventually(
            lambda: len(values_of(bootstrap, target)) == 10, "ten values", timeout_seconds=WAIT_S
        )
        eventually(
            lambda: committed(bootstrap, group) == {0: 10},
            "the group's commit",
            timeout_seconds=WAIT_S,
        )
    finally:
        query.stop()


def test_a_task_that_is_repeated_has_written_nothing_before(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source = make_topic(bootstrap, new_name())
    target = make_topic(bootstrap, new_name())
    for partition in range(2):
        fill(bootstrap, source, [b"%d" % n for n in range(20)], partition=partition)
    marker = tmp_path / "failed"

    def fail_once(value: bytearray) -> bytearray:
        if value == b"19" and not marker.exists():
            marker.touch()
            raise RuntimeError("the task is lost after its first rows were handed on")
        return value

    frame = stream(spark, bootstrap, subscribe=source)
    broken = frame.select("key", udf(fail_once, BinaryType())("value").alias("value"))
    run_once(broken, bootstrap, tmp_path / "checkpoint", topic=target)
    assert marker.exists()
    assert sorted(values_of(bootstrap, target)) == sorted([b"%d" % n for n in range(20)] * 2)


def test_a_query_fails_plainly_where_its_topic_has_lost_records(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source = make_topic(bootstrap, new_name(), 1)
    target = make_topic(bootstrap, new_name(), 1)
    fill(bootstrap, source, [b"x"] * 10)
    frame = stream(spark, bootstrap, subscribe=source).select("value")
    run_once(frame, bootstrap, tmp_path, topic=target)
    fill(bootstrap, source, [b"y"] * 10)
    with ottla.Admin(bootstrap) as admin:
        admin.delete_records(source, {0: 15})
    with pytest.raises(PySparkException, match="offset 10 is outside of the log's range"):
        run_once(frame, bootstrap, tmp_path, topic=target)
    lossy = stream(spark, bootstrap, subscribe=source, failOnDataLoss="false").select("value")
    run_once(lossy, bootstrap, tmp_path, topic=target)
    assert values_of(bootstrap, target) == [b"x"] * 10 + [b"y"] * 5


def test_a_stateful_query_writes_its_updates(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source = make_topic(bootstrap, new_name(), 1)
    target = make_topic(bootstrap, new_name(), 2)
    fill(bootstrap, source, [b"a", b"b", b"a"])
    counts = (
        stream(spark, bootstrap, subscribe=source)
        .groupBy("key")
        .count()
        .selectExpr("key", "CAST(count AS STRING) AS value")
    )
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(ottla.spark.to_topic(target, bootstrap_servers=bootstrap))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)
    rows = [row for part in rows_of(bootstrap, target).values() for row in part]
    assert sorted(rows) == [(b"a", b"2"), (b"b", b"1")]
    with ottla.Admin(bootstrap) as admin:
        (row,) = admin.group_lag(f"ottla-spark-{query.id}")
    assert row.committed == 1, "the ledger is the query's"


def test_every_batch_is_in_the_ledger_of_its_query(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    source = make_topic(bootstrap, new_name(), 1)
    target = make_topic(bootstrap, new_name(), 1)
    fill(bootstrap, source, [b"x"] * 6)
    name = new_name()
    frame = stream(spark, bootstrap, subscribe=source, maxOffsetsPerTrigger="2").select("value")
    query = run_once(frame, bootstrap, tmp_path, topic=target, transactionalId=name)
    with ottla.Admin(bootstrap) as admin:
        (row,) = admin.group_lag(name)
    assert row.partition == TopicPartition(target, 0)
    assert row.committed == 3, "the number of the next batch"
    assert len(query.recentProgress) == 3
