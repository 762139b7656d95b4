"""`write` and `writeStream` with `format("ottla")`: what tasks do, and what the driver does then.

At least once, tasks write to the brokers themselves. Exactly once, a task only encodes its rows and
hands the record batches to the driver (hand_over.py); the driver appends those of all tasks in one
transaction. So a task that is lost, repeated or run twice at a time has written nothing, and a
transaction is open only while the driver commits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ottla.clients.blocking.loop_thread import LoopThread
from ottla.clients.client import Client
from ottla.clients.connection_settings import client_for
from ottla.spark.batch_appender import BatchAppender, Signature, idempotent_signature
from ottla.spark.batch_commit import Load, commit_batch
from ottla.spark.hand_over import forget, hand_over, staging_directory
from ottla.spark.ledger import NO_QUERY, LedgerEntry
from ottla.spark.plain_errors import plainly
from ottla.spark.row_encoder import EncodedRun, RowEncoder
from ottla.spark.sink_plan import Delivery, SinkPlan
from ottla.spark.staged_batches import local_directory

if TYPE_CHECKING:
    import pyarrow

NAME_PREFIX: Final = "ottla-spark-"
QUERY_ID: Final = "sql.streaming.queryId"


class TaskResult(WriterCommitMessage):
    """What a task has done, and what it leaves to the driver."""

    def __init__(self, record_count: int, runs: Sequence[EncodedRun], query: str) -> None:
        self.record_count = record_count
        self.runs = tuple(runs)
        """Nothing where the task has written them itself."""
        self.query = query


class BatchWriter(DataSourceArrowWriter):
    """One write of a frame."""

    def __init__(self, plan: SinkPlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return write_rows(self._plan, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, when all tasks are done."""
        if self._plan.delivery is Delivery.EXACTLY_ONCE:
            name = self._plan.transactional_id or f"{NAME_PREFIX}{uuid4()}"
            _commit(self._plan, _results(messages), name, self._plan.batch_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, when a task has failed for good, or the commit."""
        _give_up(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """The sink of one streaming query."""

    def __init__(self, plan: SinkPlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return write_rows(self._plan, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, when all tasks of a micro-batch are done."""
        if self._plan.delivery is Delivery.EXACTLY_ONCE:
            results = _results(messages)
            query = next((result.query for result in results), NO_QUERY)
            name = self._plan.transactional_id or f"{NAME_PREFIX}{query}"
            _commit(self._plan, results, name, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, when a task has failed for good, or the commit."""
        del batchId
        _give_up(messages)


def _results(messages: Iterable[WriterCommitMessage | None]) -> list[TaskResult]:
    return [message for message in messages if isinstance(message, TaskResult)]


def _give_up(messages: Iterable[WriterCommitMessage | None]) -> None:
    """Nothing was written; what tasks left in files goes."""
    for result in _results(messages):
        forget(result.runs)


def _commit(plan: SinkPlan, results: Sequence[TaskResult], name: str, batch_id: int | None) -> None:
    runs = [run for result in results for run in result.runs]
    if not runs:  # nothing that could be written twice
        return
    entry = None if batch_id is None else LedgerEntry(name, results[0].query, batch_id)
    loop = LoopThread("spark-sink")
    try:
        with plainly():
            loop.run(commit_batch(plan, Load(name, runs, entry)))
    finally:
        loop.stop()


def write_rows(plan: SinkPlan, rows: Iterable[pyarrow.RecordBatch]) -> TaskResult:
    """Writes or encodes the rows of one task."""
    task = TaskContext.get()
    query = (task.getLocalProperty(QUERY_ID) if task else None) or NO_QUERY
    with _Connection(plan) as connection:
        encoder = RowEncoder(
            plan,
            connection.partition_count,
            time.time_ns() // 1_000_000,
            task.partitionId() if task else 0,
        )
        if plan.delivery is Delivery.EXACTLY_ONCE:
            directory = staging_directory(
                plan.staging_directory, plan.driver_directory, local_directory(os.environ)
            )
            runs = hand_over(chain.from_iterable(encoder.encode(rows)), directory)
            return TaskResult(sum(run.record_count for run in runs), runs, query)
        return TaskResult(connection.append(encoder.encode(rows)), (), query)


class _Connection:
    """A task's way to the cluster; connects when first asked."""

    __slots__ = ("_client", "_counts", "_loop", "_plan")

    def __init__(self, plan: SinkPlan) -> None:
        self._plan = plan
        self._loop = LoopThread("spark-task")
        self._client: Client = client_for(
            plan.connection, total_s=plan.producer.delivery_timeout_ms / 1000
        )
        self._counts: dict[str, int] = {}

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._client.close())
        self._loop.stop()

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has; it may be created by being asked for."""
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = self._loop.run(self._count(topic))
        return count

    def append(self, portions: Iterable[Sequence[EncodedRun]]) -> int:
        """Writes portion by portion and returns how many records it were.

        While one is on its way the next is being encoded: two are in memory.
        """
        appender: BatchAppender | None = None
        with ThreadPoolExecutor(1, "ottla-append") as sender:
            under_way: Future[None] | None = None
            for portion in portions:
                if appender is None:
                    signature = self._loop.run(self._signature())
                    appender = BatchAppender(self._client, self._plan.producer, signature)
                if under_way is not None:
                    under_way.result()
                under_way = sender.submit(self._append, appender, portion)
            if under_way is not None:
                under_way.result()
        return appender.record_count if appender is not None else 0

    def _append(self, appender: BatchAppender, portion: Sequence[EncodedRun]) -> None:
        self._loop.run(appender.append(portion))

    async def _signature(self) -> Signature:
        if self._plan.producer.acks_number != -1:
            return Signature()
        return await idempotent_signature(self._client)

    async def _count(self, topic: str) -> int:
        async def look() -> int:
            return len((await self._client.topic(topic, may_create=True)).partitions)

        return await self._client.retrying(look, topics=[topic])
