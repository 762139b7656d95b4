"""[start, end) of one partition as Arrow record batches, for a plain thread and without a group.

What a task of a Spark job reads with. The next answer is fetched in the background, by a loop in a
thread of its own, while the caller works on the last; decoding happens in the caller's thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ottla.clients.arrow.columns import COLUMNS, read_schema
from ottla.clients.arrow.read_plan import plan_read
from ottla.clients.arrow.reading import Reading
from ottla.clients.blocking.reading import BlockingReading
from ottla.clients.failures import WrongUse
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

    __slots__ = ("_batches", "_plan", "_reading")

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
        ranges = {partition: Window(start, end)}

        async def begin(reading: Reading) -> None:
            reading.begin(ranges)

        self._reading = BlockingReading(self._plan, begin)
        self._batches = self._reading.batches()

    @property
    def schema(self) -> pyarrow.Schema:
        """Of every batch."""
        return read_schema(self._plan.columns)

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        return self._batches

    def close(self) -> None:
        """Disconnects and ends the thread. Once is enough."""
        self._reading.close()

    def __enter__(self) -> PartitionReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
