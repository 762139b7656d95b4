"""Options are Spark's, by any case; a wrong one is named, with what to write instead."""

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition
from ottla.spark.bounds import WithoutMatch
from ottla.spark.offsets import EARLIEST, LATEST
from ottla.spark.options import Use, duration_ms
from ottla.spark.sink_plan import Delivery, SinkPlan, sink_plan
from ottla.spark.source_plan import SourcePlan, source_plan

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
KEY_VALUE = StructType([StructField("key", StringType()), StructField("value", StringType())])


def a_source(use: Use = Use.STREAM_READ, /, **options: str) -> SourcePlan:
    return source_plan(use, {**SERVERS, "subscribe": "orders", **options})


def a_sink(
    use: Use = Use.STREAM_WRITE, /, schema: StructType = KEY_VALUE, **options: str
) -> SinkPlan:
    return sink_plan(use, {**SERVERS, "topic": "orders", **options}, schema)


def test_names_are_understood_in_any_case() -> None:
    plan = source_plan(
        Use.STREAM_READ,
        {
            "KAFKA.Bootstrap.Servers": "localhost:9092",
            "SUBSCRIBE": "a, b",
            "maxoffsetspertrigger": "5",
        },
    )
    assert plan.selection.topics == ("a", "b")
    assert plan.limits.offsets_max == 5


def test_reading_is_of_committed_records_unless_told_otherwise() -> None:
    assert a_source().committed_only
    assert not a_source(**{"kafka.isolation.level": "read_uncommitted"}).committed_only


def test_a_stream_begins_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert a_source(Use.STREAM_READ).start.everywhere == LATEST
    plan = a_source(Use.READ)
    assert plan.start.everywhere == EARLIEST
    assert plan.end is not None
    assert plan.end.everywhere == LATEST


def test_offsets_are_sparks_json() -> None:
    plan = a_source(startingOffsets='{"orders": {"0": 23, "1": -2}}')
    assert plan.start.offsets == {
        TopicPartition("orders", 0): 23,
        TopicPartition("orders", 1): EARLIEST,
    }


def test_a_time_comes_before_offsets() -> None:
    plan = a_source(
        startingTimestamp="1700000000000",
        startingOffsets="earliest",
        startingOffsetsByTimestampStrategy="latest",
    )
    assert plan.start.timestamp_ms == 1_700_000_000_000
    assert plan.start.without_match is WithoutMatch.LATEST


def test_the_group_is_taken_under_both_names() -> None:
    assert a_source(**{"group.id": "kitchen"}).group_id == "kitchen"
    assert a_source(**{"kafka.group.id": "kitchen"}).group_id == "kitchen"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subscibe": "x"}, "did you mean subscribe?"),
        ({"assign": '{"a": [0]}'}, "exclude each other"),
        ({"endingOffsets": "latest"}, "means nothing for a streaming read"),
        ({"topic": "x"}, "it is for a batch write and a streaming write"),
        ({"startingOffsets": "newest"}, "is not a JSON object"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "is refused"),
        ({"maxOffsetsPerTrigger": "many"}, "is not a whole number"),
        ({"maxOffsetsPerTrigger": "0"}, "1 is the least"),
        ({"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"}, "is more than"),
        ({"maxTriggerDelay": "soon"}, "is not a time"),
        ({"includeHeaders": "yes"}, "neither true nor false"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "use error or latest"),
        ({"kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "cannot be set here"),
        ({"kafka.fetch.max.byte": "1"}, "fetch_max_bytes"),
        ({"kafka.bootstrap.servers": "nowhere:port"}, "nowhere"),
    ],
)
def test_a_bad_option_of_a_source_says_what_to_do(options: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        a_source(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffsets": "latest"}, "cannot begin at the end"),
        ({"endingOffsets": "earliest"}, "cannot end at the beginning"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "cannot end at the beginning"),
        ({"maxOffsetsPerTrigger": "5"}, "it is for a streaming read"),
    ],
)
def test_a_bad_option_of_a_batch_says_what_to_do(options: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        a_source(Use.READ, **options)


def test_brokers_and_topics_must_be_named() -> None:
    with pytest.raises(ConfigError, match="bootstrap"):
        source_plan(Use.READ, {"subscribe": "x"})
    with pytest.raises(ConfigError, match="use one of subscribe"):
        source_plan(Use.READ, SERVERS)
    with pytest.raises(ConfigError, match="names no topic"):
        a_source(subscribe=" , ")
    with pytest.raises(ConfigError, match="subscribePattern"):
        source_plan(Use.READ, {**SERVERS, "subscribePattern": "(["})


def test_a_stream_is_written_exactly_once_and_a_batch_where_it_is_asked_for() -> None:
    assert a_sink(Use.STREAM_WRITE).delivery is Delivery.EXACTLY_ONCE
    assert a_sink(Use.WRITE).delivery is Delivery.AT_LEAST_ONCE
    assert a_sink(Use.WRITE, transactionalId="x", batchId="3").delivery is Delivery.EXACTLY_ONCE
    assert a_sink(delivery="at-least-once").delivery is Delivery.AT_LEAST_ONCE


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delivery": "twice"}, "use exactly-once or at-least-once"),
        ({"kafka.acks": "1"}, "exactly-once delivery needs all"),
        ({"kafka.transactional.id": "x"}, "use transactionalId"),
        ({"delivery": "at-least-once", "transactionalId": "x"}, "means nothing"),
        ({"subscribe": "x"}, "means nothing for a streaming write"),
        ({"kafka.linger": "5"}, "linger_ms"),
    ],
)
def test_a_bad_option_of_a_sink_says_what_to_do(options: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        a_sink(**options)


def test_a_batch_number_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="set transactionalId"):
        a_sink(Use.WRITE, batchId="3")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([StructField("key", StringType())], "no such column among key"),
        ([StructField("value", LongType())], "cast it to binary or string"),
        (
            [StructField("value", StringType()), StructField("headers", StringType())],
            "cast it to array",
        ),
        (
            [StructField("value", StringType()), StructField("partition", LongType())],
            "cast it to integer",
        ),
    ],
)
def test_columns_are_checked_before_anything_runs(fields: list[StructField], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        a_sink(schema=StructType(fields))


def test_columns_a_topic_has_no_place_for_are_left_out() -> None:
    schema = StructType([*KEY_VALUE, StructField("offset", LongType())])
    assert a_sink(schema=schema).columns == ("key", "value")


def test_a_topic_comes_from_the_option_or_from_a_column() -> None:
    with pytest.raises(ConfigError, match="set the option, or add a column"):
        sink_plan(Use.WRITE, SERVERS, KEY_VALUE)
    schema = StructType([*KEY_VALUE, StructField("topic", StringType())])
    assert sink_plan(Use.WRITE, SERVERS, schema).topic is None


def test_a_partition_column_is_an_integer() -> None:
    schema = StructType([*KEY_VALUE, StructField("partition", IntegerType())])
    assert "partition" in a_sink(schema=schema).columns


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("15m", 900_000),
        ("10 seconds", 10_000),
        ("1h", 3_600_000),
        ("250ms", 250),
        ("2 days", 172_800_000),
    ],
)
def test_times_are_written_as_spark_writes_them(text: str, ms: int) -> None:
    assert duration_ms("maxTriggerDelay", text) == ms
