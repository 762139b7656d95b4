"""Everything a write is told, from its options and the columns of what is written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from ottla.clients.connection_settings import ConnectionSettings, addresses_of
from ottla.clients.producer.settings import ProducerSettings, check_together
from ottla.clients.settings_source import SettingsSource
from ottla.errors import ConfigError
from ottla.spark.options import OptionTexts, Use
from ottla.spark.staged_batches import check_place, local_directory

BATCH_BYTES_DEFAULT: Final = 1_000_000
"""Rows come by the thousand here: a batch may fill what a topic takes by default."""
SLOWEST_BYTES_PER_S: Final = 5_000_000
"""A transaction stays open for as long as a cluster of this speed needs, unless told otherwise."""
TRANSACTION_MS_MAX: Final = 15 * 60_000
"""What brokers allow by default."""


class Delivery(Enum):
    """What a write promises."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """Where to write, and how."""

    connection: ConnectionSettings
    producer: ProducerSettings
    delivery: Delivery
    columns: tuple[str, ...]
    """Those of the frame that are written."""
    topic: str | None = None
    """The topic of all rows; without it each row says its own."""
    transactional_id: str = ""
    batch_id: int | None = None
    """The number of this batch write, where it is one of several that must not be repeated."""
    staging_directory: str = ""
    """Where tasks may leave files for the driver, as the person says."""
    driver_directory: str = ""
    """The directory of the Spark process the driver is, as Spark says."""
    has_own_time_limit: bool = False
    """Whether the person has said how long a transaction may be open."""

    def under(self, transactional_id: str, size_bytes: int = 0) -> ProducerSettings:
        """The producer's settings for a transaction of this size under this name."""
        timeout_ms = self.producer.transaction_timeout_ms
        if not self.has_own_time_limit:
            needed_ms = min(size_bytes * 1000 // SLOWEST_BYTES_PER_S, TRANSACTION_MS_MAX)
            timeout_ms = max(timeout_ms, needed_ms)
        return replace(
            self.producer, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )


def sink_plan(use: Use, options: Mapping[str, str], schema: StructType) -> SinkPlan:
    """Reads and checks options and columns; ConfigError says what is wrong with them."""
    texts = OptionTexts(use, options)
    source = SettingsSource("producer", texts.kafka(), {})
    source.check_names((ConnectionSettings, ProducerSettings))
    producer = check_together(source.read(ProducerSettings), idempotence_was_asked=False)
    if not source.was_given("batch.size"):
        producer = replace(producer, batch_size=BATCH_BYTES_DEFAULT)
    batch_size = min(producer.batch_size, producer.max_request_size)
    connection = source.read(ConnectionSettings)
    addresses_of(connection)  # complains where they are none
    topic = texts.text("topic")
    plan = SinkPlan(
        connection=connection,
        producer=replace(producer, batch_size=batch_size),
        delivery=_delivery(texts),
        columns=_columns(schema, topic),
        topic=topic,
        transactional_id=texts.text("transactionalId") or "",
        batch_id=texts.number("batchId", at_least=0),
        staging_directory=texts.text("stagingDirectory") or "",
        driver_directory=local_directory(os.environ),
        has_own_time_limit=source.was_given("transaction.timeout.ms"),
    )
    _check_together(plan)
    return plan


def _delivery(texts: OptionTexts) -> Delivery:
    """A stream is written exactly once unless told otherwise; a batch where it is asked for."""
    asks = texts.text("transactionalId") is not None or texts.text("batchId") is not None
    is_once = texts.use is Use.STREAM_WRITE or asks
    default = Delivery.EXACTLY_ONCE if is_once else Delivery.AT_LEAST_ONCE
    return texts.one_of("delivery", {each.value: each for each in Delivery}, default)


def _check_together(plan: SinkPlan) -> None:
    if plan.batch_id is not None and not plan.transactional_id:
        raise ConfigError("batchId", "needs a name to be counted under", "set transactionalId")
    if plan.delivery is Delivery.AT_LEAST_ONCE and plan.transactional_id:
        raise ConfigError("transactionalId", "means nothing with at-least-once delivery")
    if plan.delivery is Delivery.EXACTLY_ONCE and plan.producer.acks_number != -1:
        raise ConfigError("kafka.acks", "exactly-once delivery needs all", "leave it out")
    if plan.staging_directory and plan.delivery is Delivery.AT_LEAST_ONCE:
        raise ConfigError("stagingDirectory", "means nothing with at-least-once delivery")
    if plan.staging_directory:
        check_place(plan.staging_directory)


_TYPES: Final[Mapping[str, tuple[type[DataType], ...]]] = {
    "key": (BinaryType, StringType),
    "value": (BinaryType, StringType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType,),
    "headers": (ArrayType,),
}


def _columns(schema: StructType, topic: str | None) -> tuple[str, ...]:
    """The columns that are written; all others are left out, as Spark's own connector does."""
    found = {field.name: field.dataType for field in schema if field.name in _TYPES}
    if "value" not in found:
        names = ", ".join(schema.fieldNames())
        raise ConfigError("value", f"there is no such column among {names}", "select one AS value")
    if topic is None and "topic" not in found:
        raise ConfigError("topic", "is missing", "set the option, or add a column of that name")
    for name, kind in found.items():
        if not isinstance(kind, _TYPES[name]):
            wanted = " or ".join(each.typeName() for each in _TYPES[name])
            raise ConfigError(name, f"the column is {kind.simpleString()}", f"cast it to {wanted}")
    if "headers" in found and not _is_headers(found["headers"]):
        raise ConfigError(
            "headers",
            f"the column is {found['headers'].simpleString()}",
            "it must be array<struct<key:string,value:binary>>",
        )
    return tuple(found)


def _is_headers(kind: DataType) -> bool:
    item = kind.elementType if isinstance(kind, ArrayType) else None
    if not isinstance(item, StructType) or item.fieldNames() != ["key", "value"]:
        return False
    return isinstance(item["key"].dataType, StringType) and isinstance(
        item["value"].dataType, BinaryType | StringType
    )
