"""Streams: a topology that runs, on a Spark of its own or on one that is there."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

from ottla.clients.blocking.admin import Admin
from ottla.errors import ConfigError
from ottla.spark.sink_plan import Delivery
from ottla.streams.spark.checkpoint_mark import mark_checkpoint
from ottla.streams.spark.failure_sentence import QueryFailed, is_passing, sentence
from ottla.streams.spark.progress import QueryProgress, query_progress, read_up_to
from ottla.streams.spark.queries import Queries
from ottla.streams.spark.run_settings import RunSettings
from ottla.streams.spark.topics import prepare_topics
from ottla.streams.spark.working_off import work_off
from ottla.streams.store_view import view_of
from ottla.streams.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RESTARTS_MAX: Final = 10
"""How often queries are started again without one of them having got anywhere."""
_PAUSE_S_MAX: Final = 10.0
"""Before that; a machine that has too much to do gets time to do it."""
_log = logging.getLogger("ottla.streams")
_LOOK_S: Final = 0.2
_ROUNDS_MAX: Final = 1_000


class Streams:
    """An application. `run` returns when it ends; or use it as a context, or `start` and `stop`.

    `app_id` names its consumer group, transactions and internal topics. `checkpoint` is a folder
    (for a cluster, one all machines see) where Spark keeps how far it is, and the state; with the
    same one the application goes on where it was. `options` are the connector's, for its reads.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        app_id: str,
        bootstrap_servers: str = "127.0.0.1:9092",
        checkpoint: str | Path | None = None,
        delivery: Literal["exactly-once", "at-least-once"] = "exactly-once",
        interval_ms: int = 250,
        config: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not app_id:
            raise ConfigError("app_id", "is empty", "give the application a name")
        deliveries = {each.value: each for each in Delivery}
        if delivery not in deliveries:
            raise ConfigError(
                "delivery", f"there is no {delivery!r}", "use " + " or ".join(deliveries)
            )
        self.topology = topology
        place = Path.home() / ".ottla" / "streams" / app_id if checkpoint is None else checkpoint
        self.settings = RunSettings(
            app_id,
            str(place),
            {"bootstrap.servers": bootstrap_servers, **(config or {})},
            deliveries[delivery],
            interval_ms,
            options=dict(options or {}),
        )
        self._queries: list[StreamingQuery] = []
        self._maker: Queries | None = None
        self._restarts = 0
        self._own_spark: SparkSession | None = None

    @property
    def app_id(self) -> str:
        return self.settings.app_id

    @property
    def queries(self) -> tuple[StreamingQuery, ...]:
        """Spark's own handles, one for each sub-topology."""
        return tuple(self._queries)

    def progress(self) -> list[QueryProgress]:
        """How each query does, by its last micro-batch."""
        parts = self.topology.subtopologies
        return [
            query_progress(
                query.name or "",
                tuple(self.topology.topic_name(one, self.app_id) for one in part.topics()),
                query.lastProgress,
            )
            for query, part in zip(self._queries, parts, strict=True)
        ]

    def store(self, name: str) -> Any:
        """A view of a store, whether the application runs here, elsewhere or not at all.

        Of a table: get, all and range; of windows: get, fetch and all; of sessions: fetch and all.
        """
        return view_of(self.topology, name, self.app_id, self.settings.kafka)

    def start(self, spark: SparkSession | None = None) -> Streams:
        """Makes the topics that are its own, and starts the queries; returns at once."""
        if self._queries:
            return self
        with Admin(config=self.settings.kafka) as admin:
            counts = prepare_topics(self.topology, self.app_id, admin)
        for part in self.topology.subtopologies:
            mark_checkpoint(self.settings.checkpoint, part)
        self._maker = Queries(self.topology, self.settings, self._session(spark), counts)
        try:
            for part in self.topology.subtopologies:
                self._queries.append(self._maker.start(part))
        except BaseException:
            self.stop()
            raise
        return self

    def run(self, spark: SparkSession | None = None) -> None:
        """Runs until somebody stops it; raises what made a query fail."""
        with self.start(spark):
            while not self.wait(60.0):
                pass

    def run_once(self, spark: SparkSession | None = None) -> None:
        """Works off what there is in the topics, and ends."""
        with self.start(spark):
            self.catch_up()

    def catch_up(self) -> None:
        """Returns when everything that was there is done, through all sub-topologies.

        What one of them writes another reads, maybe in a circle: rounds, until one does nothing.
        Timers by the wall clock may write for ever. With them it is enough to come by everywhere
        twice: so a foreign-key join goes there and back.
        """
        has_clock = self._maker is not None and bool(self._maker.clocked)
        done = self._read_up_to()
        for _ in range(2 * len(self._queries) + 1 if has_clock else _ROUNDS_MAX):
            for number in range(len(self._queries)):
                self._catch_up(number)
            before, done = done, self._read_up_to()
            if before == done:
                return

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within the time; raises what made a query fail."""
        until = time.monotonic() + timeout_s
        while self._queries:
            for number, query in enumerate(self._queries):
                if not query.isActive and not self._revive(number):
                    return True
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_S)
        return True

    def stop(self) -> None:
        """Stops the queries, and the Spark it had started itself. Once is enough."""
        queries, self._queries = self._queries, []
        for query in queries:
            query.stop()
        if self._own_spark is not None:
            self._own_spark.stop()
            self._own_spark = None

    def __enter__(self) -> Streams:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _session(self, spark: SparkSession | None) -> SparkSession:
        import ottla.spark
        from ottla.streams.spark.data_source import PacketDataSource

        if spark is None:
            from pyspark.sql import SparkSession

            is_there = SparkSession.getActiveSession() is not None
            spark = ottla.spark.session(self.app_id)
            self._own_spark = None if is_there else spark
        spark.dataSource.register(PacketDataSource)
        return spark

    def _catch_up(self, number: int) -> None:
        from pyspark.errors import StreamingQueryException

        assert self._maker is not None
        has_clock = self.topology.subtopologies[number].id in self._maker.clocked
        while True:
            try:
                work_off(self._queries[number], has_clock=has_clock)
                return
            except StreamingQueryException:
                if not self._revive(number):
                    raise

    def _revive(self, number: int) -> bool:
        """Starts a query again that has ended for a passing reason; raises any other reason."""
        query, failed = self._queries[number], self._queries[number].exception()
        if failed is None or self._maker is None:
            return False
        text = str(failed)
        if query.lastProgress is not None:
            self._restarts = 0
        if not is_passing(text) or self._restarts >= RESTARTS_MAX:
            raise QueryFailed(query.name or "", sentence(text))
        self._restarts += 1
        _log.warning("%s is started again: %s", query.name, sentence(text))
        time.sleep(min(_PAUSE_S_MAX, 0.1 * 2**self._restarts))
        self._queries[number] = self._maker.start(self.topology.subtopologies[number])
        return True

    def _read_up_to(self) -> list[dict[tuple[str, str], int]]:
        return [read_up_to(query.lastProgress) for query in self._queries]
