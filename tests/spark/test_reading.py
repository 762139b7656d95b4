"""`spark.read.format("ottla")` on a real Spark: every record once, with Spark's columns."""

import datetime
from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import ottla
from spark.topics import fill, make_topic, options

NewName = Callable[[], str]


def read(spark: SparkSession, bootstrap: str, **named: str) -> DataFrame:
    return spark.read.format("ottla").options(**options(bootstrap, **named)).load()


@pytest.fixture(scope="module")
def numbers(bootstrap: str) -> str:
    """A topic of three partitions with 100 records each, values 0 to 99."""
    name = make_topic(bootstrap, "spark-reading-numbers", 3)
    for partition in range(3):
        fill(bootstrap, name, (b"%d" % n for n in range(100)), partition=partition)
    return name


def test_every_record_is_read_once_with_sparks_columns(
    spark: SparkSession, bootstrap: str, numbers: str
) -> None:
    frame = read(spark, bootstrap, subscribe=numbers)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    rows = frame.orderBy("partition", "offset").collect()
    assert [(row.topic, row.partition, row.offset, row.timestampType) for row in rows] == [
        (numbers, partition, offset, 0) for partition in range(3) for offset in range(100)
    ]
    assert all(bytes(row.value) == bytes(row.key) == b"%d" % row.offset for row in rows)


def test_headers_nulls_and_times_arrive_as_they_were_written(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name(), 1)
    with ottla.Producer(bootstrap) as producer:
        producer.send(topic, None, key=b"gone", timestamp_ms=1_700_000_000_123)
        producer.send(
            topic, b"", headers=[("a", b"1"), ("a", None)], timestamp_ms=1_700_000_000_124
        )
    first, second = (
        read(spark, bootstrap, subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    )
    assert (first.value, bytes(first.key), first.headers) == (None, b"gone", None)
    assert (bytes(second.value), second.key) == (b"", None)
    assert [(h.key, h.value and bytes(h.value)) for h in second.headers] == [
        ("a", b"1"),
        ("a", None),
    ]
    assert first.timestamp.replace(tzinfo=datetime.UTC).timestamp() == 1_700_000_000.123


def test_only_the_records_between_two_offsets_are_read(
    spark: SparkSession, bootstrap: str, numbers: str
) -> None:
    frame = read(
        spark,
        bootstrap,
        subscribe=numbers,
        startingOffsets=f'{{"{numbers}": {{"0": 95, "1": -2, "2": 100}}}}',
        endingOffsets=f'{{"{numbers}": {{"0": -1, "1": 2, "2": -1}}}}',
    )
    rows = frame.orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset) for row in rows] == [
        *((0, offset) for offset in range(95, 100)),
        (1, 0),
        (1, 1),
    ]


def test_times_choose_offsets(spark: SparkSession, bootstrap: str, new_name: NewName) -> None:
    topic = make_topic(bootstrap, new_name(), 1)
    with ottla.Producer(bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, timestamp_ms=1_700_000_000_000 + number)
    frame = read(
        spark,
        bootstrap,
        subscribe=topic,
        startingTimestamp="1700000000003",
        endingTimestamp="1700000000007",
    )
    assert sorted(int(row.value) for row in frame.collect()) == [3, 4, 5, 6]


def test_a_partition_is_cut_into_as_many_tasks_as_asked_for(
    spark: SparkSession, bootstrap: str, numbers: str
) -> None:
    frame = read(spark, bootstrap, assign=f'{{"{numbers}": [0]}}', minPartitions="4")
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in frame.collect()) == list(range(100))


def test_a_pattern_finds_topics(spark: SparkSession, bootstrap: str, new_name: NewName) -> None:
    stem = new_name()
    for number in range(2):
        fill(bootstrap, make_topic(bootstrap, f"{stem}.{number}", 1), [b"%d" % number])
    make_topic(bootstrap, f"other-{stem}.9", 1)
    found = read(spark, bootstrap, subscribePattern=stem + r"\.\d").collect()
    assert {(row.topic, int(row.value)) for row in found} == {(f"{stem}.0", 0), (f"{stem}.1", 1)}


def test_records_of_aborted_transactions_are_left_out(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name(), 1)
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        producer.begin_transaction()
        producer.send(topic, b"never").result(30)
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"ever")
    assert [bytes(r.value) for r in read(spark, bootstrap, subscribe=topic).collect()] == [b"ever"]
    everything = read(
        spark, bootstrap, subscribe=topic, **{"kafka.isolation.level": "read_uncommitted"}
    )
    assert everything.count() == 2


def test_filters_that_are_pushed_leave_the_same_rows(
    spark: SparkSession, bootstrap: str, numbers: str
) -> None:
    frame = read(spark, bootstrap, subscribe=numbers, pushFilters="true")
    rows = frame.where("partition = 1 AND offset >= 5 AND offset < 8").collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(1, 5), (1, 6), (1, 7)]


def test_a_frame_can_be_used_twice_with_different_filters(
    spark: SparkSession, bootstrap: str, numbers: str
) -> None:
    frame = read(spark, bootstrap, subscribe=numbers)
    assert frame.where("partition = 1 AND offset < 5").count() == 5
    assert frame.count() == 300


def test_records_that_are_gone_fail_the_read_unless_loss_is_allowed(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    topic = make_topic(bootstrap, new_name(), 1)
    fill(bootstrap, topic, (b"%d" % n for n in range(10)))
    with ottla.Admin(bootstrap) as admin:
        admin.delete_records(topic, {0: 6})
    since = f'{{"{topic}": {{"0": 2}}}}'
    with pytest.raises(PySparkException, match="offset 2 is outside"):
        read(spark, bootstrap, subscribe=topic, startingOffsets=since).collect()
    lossy = read(spark, bootstrap, subscribe=topic, startingOffsets=since, failOnDataLoss="false")
    assert sorted(row.offset for row in lossy.collect()) == [6, 7, 8, 9]


def test_nothing_is_read_from_an_empty_topic(
    spark: SparkSession, bootstrap: str, new_name: NewName
) -> None:
    assert read(spark, bootstrap, subscribe=make_topic(bootstrap, new_name())).collect() == []


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"subscibe": "x"}, "subscibe: is not an option of a batch read; did you mean subscribe?"),
        ({"subscribe": "no-such-topic"}, "there is no topic 'no-such-topic'"),
        ({"subscribe": "x", "kafka.bootstrap.servers": "127.0.0.1:1"}, "127.0.0.1:1"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_before_a_task_runs(
    spark: SparkSession, bootstrap: str, named: dict[str, str], says: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        read(spark, bootstrap, **named).collect()
    assert says in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_another_schema_is_refused(spark: SparkSession, bootstrap: str, numbers: str) -> None:
    frame = spark.read.format("ottla").options(**options(bootstrap, subscribe=numbers))
    with pytest.raises(AnalysisException, match="always have the same columns"):
        frame.schema("value STRING").load().collect()
