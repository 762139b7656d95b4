"""A topology as streaming queries: one for each sub-topology. Runs on the driver."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.spark.offsets import to_topic_offsets
from ottla.spark.sink_plan import Delivery
from ottla.streams.operators import Process
from ottla.streams.partitions import task_count
from ottla.streams.spark.checkpoint_folder import is_begun
from ottla.streams.spark.data_source import (
    CLOCKED,
    CONSUMER,
    FORMAT,
    PACKET_WRITTEN,
    PURGED,
    WOKEN,
)
from ottla.streams.spark.kept_stores import has_state
from ottla.streams.spark.processor import PartitionProcessor, without_state
from ottla.streams.spark.resumption import Resuming, Resumption
from ottla.streams.spark.run_settings import RunSettings, query_name
from ottla.streams.spark.worker import Work, forgetful_store, new_task, pickled
from ottla.streams.topology import Subtopology, SubtopologyId, Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_SOURCES_WAIT_S: Final = 60.0
_BEFORE_SOURCES: Final = ("Initializing StreamExecution", "Initializing sources")
CLOCK_INTERVAL_MS: Final = 1_000
"""How often a query looks at the wall clock that has timers by it."""


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

    __slots__ = ("_counts", "_pickled", "_settings", "_spark", "_topology", "clocked")

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
        self.clocked: set[SubtopologyId] = set()
        """Those that were started and have timers by the wall clock."""

    def start(self, part: Subtopology) -> StreamingQuery:
        """Returns when the query looks for records: it starts processes, which is much at once."""
        query = self._start(part)
        _wait_for_sources(query)
        return query

    def _start(self, part: Subtopology) -> StreamingQuery:
        settings, resumption = self._settings, self._resumption(part)
        work = Work(
            self._pickled,
            tuple(sys.path),
            part.id,
            settings.app_id,
            self._counts,
            settings.kafka,
            resumption.changelogs,
        )
        interval_ms = settings.interval_ms
        if has_clock(work):
            self.clocked.add(part.id)
            interval_ms = max(interval_ms, CLOCK_INTERVAL_MS)
        writer = self._written(self._read(part, resumption), work)
        return writer.trigger(processingTime=f"{interval_ms} milliseconds").start()

    def _kafka(self) -> dict[str, str]:
        return {f"kafka.{name}": text for name, text in self._settings.kafka.items()}

    def _place(self, part: Subtopology) -> str:
        return f"{self._settings.checkpoint}/{part.id}"

    def _resumption(self, part: Subtopology) -> Resumption:
        """Where to go on instead, if it is not the checkpoint that says so."""
        if is_begun(self._place(part), self._spark):
            return Resumption()
        return Resuming(self._topology, self._settings, self._counts).find(part)

    def _read(self, part: Subtopology, resumption: Resumption) -> DataFrame:
        settings = self._settings
        names = {one: self._topology.topic_name(one, settings.app_id) for one in part.topics()}
        own = [name for one, name in names.items() if self._topology.is_internal(one)]
        options = {
            **self._kafka(),
            "subscribe": ",".join(names.values()),
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": str(settings.batch_records_max),
            PURGED: ",".join(own),
            **settings.options,
        }
        if settings.delivery is not Delivery.EXACTLY_ONCE:  # else offsets go with the results
            options["group.id"] = settings.app_id
        if resumption.offsets:
            options["startingOffsets"] = json.dumps(to_topic_offsets(resumption.offsets))
        if part.id in self.clocked:
            options[CLOCKED] = "true"
        if resumption.changelogs:
            options[WOKEN] = str(task_count(part, self._short_counts(part)))
        return self._spark.readStream.format(FORMAT).options(**options).load()

    def _short_counts(self, part: Subtopology) -> dict[str, int]:
        app_id = self._settings.app_id
        return {
            topic: self._counts[self._topology.topic_name(topic, app_id)] for topic in part.topics()
        }

    def _written(self, packets: DataFrame, work: Work) -> DataStreamWriter:
        settings, part = self._settings, work.subtopology
        is_clocked = part.id in self.clocked
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
            "checkpointLocation": self._place(part),
        }
        if settings.delivery is Delivery.EXACTLY_ONCE:
            options["transactionalId"] = name
            options[CONSUMER] = settings.app_id
        return frame.writeStream.format(FORMAT).queryName(name).options(**options)
