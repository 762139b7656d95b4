"""[start, end) of one partition as Arrow record batches, for a plain thread and without a group.

What a task of a Spark job reads with. The next answer is fetched in the background, by a loop in a
thread of its own, while the caller works on the last; decoding happens in the caller's thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ottla.clients.arrow.columns import COLUMNS, decode_columns, intact, read_schema
from ottla.clients.arrow.range_fetcher import RangeFetcher
from ottla.clients.arrow.read_plan import ReadPlan, plan_read
from ottla.clients.blocking.loop_thread import LoopThread, close_at_exit
from ottla.clients.client import Client
from ottla.clients.connection_settings import client_for
from ottla.clients.failures import ClientClosed, WrongUse
from ottla.clients.producer.core import with_bootstrap
from ottla.clients.settings_source import Config
from ottla.model.ids import TopicPartition
from ottla.records.arrow_decode import Window

if TYPE_CHECKING:
    import pyarrow


class PartitionReader:
    """Reads the offsets [start, end) of one partition, once, in order.

    `with PartitionReader(TopicPartition("topic", 0), 0, 1000, bootstrap_servers="host:9092") as
    reader:` and then `for batch in reader`. Settings are a consumer's keywords, or Kafka's own
    names in `config`; `columns` are some of COLUMNS, and what is not asked for is not decoded.

    Raises RecordsGone where the log does not hold an offset of the range (any more), before any
    record beyond the gap is handed out; TimedOut where the end is not reached because nothing
    comes for `default_api_timeout_ms`: it lies beyond the log's end, or with `read_committed`
    beyond an open transaction; CorruptBatch where bytes arrive damaged; and what the connection
    and the brokers raise when repeating does not help.
    """

    __slots__ = ("__weakref__", "_batches", "_client", "_fetcher", "_loop", "_plan")

    def __init__(
        self,
        partition: TopicPartition,
        start: int,
        end: int,
        *,
        columns: Sequence[str] = COLUMNS,
        read_committed: bool | None = None,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: Config = None,
        **settings: object,
    ) -> None:
        if not 0 <= start <= end:
            raise WrongUse(f"[{start}, {end}) is not a range of offsets")
        self._plan = plan_read(
            config,
            with_bootstrap(settings, bootstrap_servers),
            columns=columns,
            read_committed=read_committed,
        )
        self._loop = LoopThread("reader")
        try:
            self._client, self._fetcher = self._loop.run(
                _open(self._plan, partition, Window(start, end))
            )
        except BaseException:
            self._loop.stop()
            raise
        self._batches = self._read()
        close_at_exit(self)

    @property
    def schema(self) -> pyarrow.Schema:
        """Of every batch."""
        return read_schema(self._plan.columns)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        return self._batches

    def _read(self) -> Iterator[pyarrow.RecordBatch]:
        fetcher, plan = self._fetcher, self._plan
        where = fetcher.where
        while (batches := self._loop.run(fetcher.next_batches())) is not None:
            checked = intact(batches, where, checks_crc=plan.checks_crc)
            yield from decode_columns(checked, where, fetcher.window, plan.columns)

    def close(self, timeout_s: float | None = None) -> None:
        """Disconnects and ends the thread. Once is enough."""
        del timeout_s  # nothing here waits for anybody
        if self._loop.is_foreign:
            return
        try:
            self._loop.run(_close(self._client, self._fetcher))
        except ClientClosed:
            return
        self._loop.stop()

    def disown(self) -> None:
        """Called in a forked process, which cannot use its parent's."""
        # Every call goes through the loop, which notices.

    def __enter__(self) -> PartitionReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def _open(
    plan: ReadPlan, where: TopicPartition, window: Window
) -> tuple[Client, RangeFetcher]:
    """Begins with the first fetch; what goes wrong with it is raised by the first batch."""
    client = client_for(plan.connection, total_s=plan.timeout_s)
    fetcher = RangeFetcher(client, where, window, plan)
    fetcher.fetch_ahead()
    return client, fetcher


async def _close(client: Client, fetcher: RangeFetcher) -> None:
    await fetcher.close()
    await client.close()
