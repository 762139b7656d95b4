"""A topology as streaming queries: one for each sub-topology. Runs on the driver."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.spark.sink_plan import Delivery
from ottla.streams.operators import Process
from ottla.streams.spark.data_source import FORMAT, PACKET_WRITTEN
from ottla.streams.spark.processor import PartitionProcessor, without_state
from ottla.streams.spark.worker import Work, forgetful_store, new_task, pickled
from ottla.streams.topology import Subtopology, Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_SOURCES_WAIT_S: Final = 60.0
_BEFORE_SOURCES: Final = ("Initializing StreamExecution", "Initializing sources")
CLOCK_INTERVAL_MS: Final = 1_000
"""How often a query looks at the wall clock that has timers by it."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How an application is run."""

    app_id: str
    checkpoint: str
    kafka: Mapping[str, str]
    """Settings of all clients, under Kafka's names; the brokers among them."""
    delivery: Delivery = Delivery.EXACTLY_ONCE
    interval_ms: int = 250
    """How often a query looks for records."""
    batch_records_max: int = 100_000
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the connector, for what is read."""


def query_name(app_id: str, part: Subtopology) -> str:
    """The name of a sub-topology's query, and of its transactions."""
    return f"{app_id}-{part.id}"


def has_state(part: Subtopology) -> bool:
    """Whether its tasks have anything to remember."""
    kept = any(not store.is_global for store in part.stores)
    return kept or any(isinstance(node.operator, Process) for node in part.nodes)


def has_clock(work: Work) -> bool:
    """Whether a processor sets a timer by the wall clock when it is made."""
    if not any(isinstance(node.operator, Process) for node in work.subtopology.nodes):
        return False
    return new_task(work, 0, forgetful_store, 0).next_wall_clock_ms is not None


def _wait_for_sources(query: StreamingQuery) -> None:
    """Returns when the query begins to look for records, or has failed, or takes very long."""
    until = time.monotonic() + _SOURCES_WAIT_S
    while query.isActive and time.monotonic() < until:
        if query.status["message"] not in _BEFORE_SOURCES:
            return
        time.sleep(0.01)


class Queries:
    """Makes and starts the queries of one application."""

    __slots__ = ("_counts", "_pickled", "_settings", "_spark", "_topology")

    def __init__(
        self,
        topology: Topology,
        settings: RunSettings,
        spark: SparkSession,
        counts: Mapping[str, int],
    ) -> None:
        self._topology = topology
        self._settings = settings
        self._spark = spark
        self._counts = dict(counts)
        self._pickled = pickled(topology)

    def start(self, part: Subtopology) -> StreamingQuery:
        """Returns when the query looks for records: it starts processes, which is much at once."""
        query = self._start(part)
        _wait_for_sources(query)
        return query

    def _start(self, part: Subtopology) -> StreamingQuery:
        settings = self._settings
        work = Work(
            self._pickled,
            tuple(sys.path),
            part.id,
            settings.app_id,
            self._counts,
            settings.kafka,
        )
        clocked = has_clock(work)
        interval_ms = max(settings.interval_ms, CLOCK_INTERVAL_MS if clocked else 0)
        writer = self._written(self._read(part), work, is_clocked=clocked)
        return writer.trigger(processingTime=f"{interval_ms} milliseconds").start()

    def _kafka(self) -> dict[str, str]:
        return {f"kafka.{name}": text for name, text in self._settings.kafka.items()}

    def _read(self, part: Subtopology) -> DataFrame:
        settings = self._settings
        topics = [self._topology.topic_name(one, settings.app_id) for one in part.topics()]
        options = {
            **self._kafka(),
            "subscribe": ",".join(topics),
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "group.id": settings.app_id,
            "maxOffsetsPerTrigger": str(settings.batch_records_max),
            **settings.options,
        }
        return self._spark.readStream.format(FORMAT).options(**options).load()

    def _written(self, packets: DataFrame, work: Work, *, is_clocked: bool) -> DataStreamWriter:
        settings, part = self._settings, work.subtopology
        if has_state(part):
            frame = packets.groupBy("partition").transformWithState(
                PartitionProcessor(work, has_clock=is_clocked),
                PACKET_WRITTEN,
                "Append",
                "ProcessingTime" if is_clocked else "None",
            )
        else:
            frame = packets.mapInArrow(without_state(work), PACKET_WRITTEN)
        name = query_name(settings.app_id, part)
        options = {
            **self._kafka(),
            "delivery": settings.delivery.value,
            "checkpointLocation": f"{settings.checkpoint}/{part.id}",
        }
        if settings.delivery is Delivery.EXACTLY_ONCE:
            options["transactionalId"] = name
        return frame.writeStream.format(FORMAT).queryName(name).options(**options)
