"""`frame.write.format("ottla")` on a real Spark: keys, topics, headers, and once where asked."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from ottla.clients.partitioner import partition_for_key
from spark.topics import make_topic, options, rows_of, values_of

NewName = Callable[[], str]


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=3).selectExpr(
        "CAST(id % 7 AS STRING) AS key", "CAST(id AS STRING) AS value"
    )


def write(frame: DataFrame, bootstrap: str, **named: str) -> None:
    frame.write.format("ottla").options(**options(bootstrap, **named)).mode("append").save()


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_every_row_is_written_to_its_keys_partition(
    spark: SparkSession, bootstrap: str, new_name: NewName, delivery: str, codec: str
) -> None:
    topic = make_topic(bootstrap, new_name(), 3)
    write(
        numbers(spark, 100),
        bootstrap,
        topic=topic,
        delivery=delivery,
        **{"kafka.compression.type": codec},
    )
    rows = rows_of(bootstrap, topic)
    for partition, mine in rows.items():
        assert {partition_for_key(key or b"", 3) for key, _ in mine} <= {partition}
    assert sorted(int(value or 0) for mine in rows.values() for _, value in mine) == list(
        range(100)
    )


def test_what_was_written_is_read_back_with_headers_and_times(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name(), 2)
    frame = spark.sql(
        "SELECT 'k' AS key, CAST(NULL AS STRING) AS value, 1 AS partition, "
        "TIMESTAMP '2024-01-02 03:04:05.678' AS timestamp, "
        "array(named_struct('key', 'h', 'value', X'01')) AS headers"
    )
    write(frame, bootstrap, topic=topic)
    (row,) = (
        spark.read.format("ottla")
        .options(**options(bootstrap, subscribe=topic, includeHeaders="true"))
        .load()
        .selectExpr("CAST(key AS STRING)", "value", "partition", "timestamp", "headers")
        .collect()
    )
    assert (row.key, row.value, row.partition) == ("k", None, 1)
    assert str(row.timestamp) == "2024-01-02 03:04:05.678000"
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"\x01")]


def test_rows_go_to_the_topics_they_name(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    stem = new_name()
    for number in range(2):
        make_topic(bootstrap, f"{stem}.{number}", 1)
    frame = spark.range(10).selectExpr(
        f"concat('{stem}.', id % 2) AS topic", "CAST(id AS STRING) AS value"
    )
    write(frame, bootstrap)
    for number in range(2):
        values = values_of(bootstrap, f"{stem}.{number}")
        assert sorted(int(value or b"") for value in values) == list(range(number, 10, 2))


def test_a_numbered_batch_is_written_once(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name())
    name = new_name()
    for batch_id in (0, 1, 1, 0, 2):
        write(
            numbers(spark, 10), bootstrap, topic=topic, transactionalId=name, batchId=str(batch_id)
        )
    assert len(values_of(bootstrap, topic)) == 30


def test_a_write_that_fails_halfway_leaves_nothing_where_it_is_atomic(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name())
    frame = numbers(spark, 30).selectExpr(
        "key", "IF(value = '29', raise_error('the last row is bad'), value) AS value"
    )
    with pytest.raises(PySparkException, match="the last row is bad"):
        write(frame, bootstrap, topic=topic, delivery="exactly-once")
    assert values_of(bootstrap, topic) == []


LARGE_ROWS = "CAST(id AS STRING) AS key", "rpad(CAST(id AS STRING), 1000, 'x') AS value"


def test_a_large_write_goes_through_files_of_which_none_is_left(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topic = make_topic(bootstrap, new_name())
    frame = spark.range(4000, numPartitions=3).selectExpr(*LARGE_ROWS)
    write(
        frame, bootstrap, topic=topic, delivery="exactly-once", stagingDirectory=str(tmp_path / "s")
    )
    assert list((tmp_path / "s").iterdir()) == [], "tasks made the directory, the driver emptied it"
    assert sorted(values_of(bootstrap, topic)) == sorted(
        b"%d" % number + b"x" * (1000 - len(b"%d" % number)) for number in range(4000)
    )


def test_a_large_write_that_fails_leaves_no_file_either(
    spark: SparkSession, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topic = make_topic(bootstrap, new_name())
    frame = spark.range(4000, numPartitions=3).selectExpr(
        *LARGE_ROWS, "IF(id = 3999, raise_error('the last row is bad'), 'h') AS bad"
    )
    with pytest.raises(PySparkException, match="the last row is bad"):
        write(
            frame.selectExpr("key", "concat(value, bad) AS value"),
            bootstrap,
            topic=topic,
            delivery="exactly-once",
            stagingDirectory=str(tmp_path / "s"),
        )
    assert list((tmp_path / "s").iterdir()) == []
    assert values_of(bootstrap, topic) == []


def test_a_local_spark_needs_no_directory_for_more_than_a_result_may_hold(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name())
    assert spark.conf.get("spark.driver.maxResultSize") == "2m"
    frame = spark.range(4000, numPartitions=3).selectExpr(*LARGE_ROWS)
    write(frame, bootstrap, topic=topic, delivery="exactly-once")
    assert len(values_of(bootstrap, topic)) == 4000


@pytest.mark.parametrize(
    ("columns", "named", "says"),
    [
        (["key"], {"topic": "x"}, "value: there is no such column among key"),
        (["key", "value"], {}, "topic: is missing"),
        (["key", "value"], {"topic": "x", "topik": "y"}, "did you mean topic?"),
    ],
)
def test_a_write_that_cannot_be_says_so_before_a_task_runs(
    spark: SparkSession, bootstrap: str, columns: list[str], named: dict[str, str], says: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        write(numbers(spark, 1).select(*columns), bootstrap, **named)
    assert says in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_a_topic_is_not_overwritten(spark: SparkSession, bootstrap: str) -> None:
    frame = numbers(spark, 1).write.format("ottla").options(**options(bootstrap, topic="x"))
    with pytest.raises(AnalysisException, match="cannot be overwritten"):
        frame.mode("overwrite").save()
