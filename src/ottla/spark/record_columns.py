"""The columns of `format("ottla")`, as Spark and as Arrow have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_READ: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
_HEADERS: Final = StructField("headers", ArrayType(_HEADER))


def read_columns(*, has_headers: bool) -> StructType:
    """What a read gives."""
    return StructType([*_READ, _HEADERS] if has_headers else [*_READ])


def client_columns(*, has_headers: bool) -> tuple[str, ...]:
    """The same columns under the names the clients have for them, without the topic."""
    named = ("key", "value", "partition", "offset", "timestamp", "timestamp_type")
    return (*named, "headers") if has_headers else named


def check_read_schema(schema: StructType, *, has_headers: bool) -> None:
    """Refuses any other schema: the columns of a topic are what they are."""
    expected = read_columns(has_headers=has_headers)
    if [(f.name, f.dataType) for f in schema] != [(f.name, f.dataType) for f in expected]:
        raise ConfigError(
            "schema",
            "records of a topic always have the same columns",
            "leave schema() out, and select or cast afterwards",
        )


def as_spark_batch(
    batch: pyarrow.RecordBatch, topic: str, target: pyarrow.Schema
) -> pyarrow.RecordBatch:
    """A batch that was read, with the names and types Spark asks for."""
    import pyarrow

    arrays = []
    for field in target:
        if field.name == "topic":
            array = pyarrow.repeat(pyarrow.scalar(topic, field.type), batch.num_rows)
        elif field.name == "headers":
            array = _headers(batch.column("headers"), field.type)
        else:
            name = "timestamp_type" if field.name == "timestampType" else field.name
            array = batch.column(name)
            if array.type != field.type:
                array = array.cast(field.type)
        arrays.append(array)
    return pyarrow.RecordBatch.from_arrays(arrays, schema=target)


def _headers(headers: pyarrow.ListArray, target: pyarrow.ListType) -> pyarrow.ListArray:
    """Null where a record has none, as in Spark's own Kafka source."""
    import pyarrow
    import pyarrow.compute

    if not len(headers.values):
        return pyarrow.nulls(len(headers), target)
    items = headers.values
    structs = pyarrow.StructArray.from_arrays(
        [items.field("key"), items.field("value")], fields=list(target.value_type)
    )
    is_empty = pyarrow.compute.equal(pyarrow.compute.list_value_length(headers), 0)
    return pyarrow.ListArray.from_arrays(headers.offsets, structs, type=target, mask=is_empty)
