"""Ranges of some partitions, one after the other, the next ones asked for ahead.

Owns the client it reads with. Does not decode, so that whoever waits may do that elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ottla.clients.arrow.columns import decode_columns
from ottla.clients.arrow.range_fetcher import RangeFetcher
from ottla.clients.arrow.read_plan import ReadPlan
from ottla.clients.client import Client
from ottla.clients.connection_settings import client_for
from ottla.model.ids import TopicPartition
from ottla.records.arrow_decode import Window
from ottla.records.batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow

PARTITIONS_AHEAD: Final = 4
"""So many partitions are fetched at once: while one is read, the first answers of the others."""


class Answer:
    """Wire batches of one partition, and how to decode them."""

    __slots__ = ("_batches", "_plan", "_where", "_window")

    def __init__(self, fetcher: RangeFetcher, batches: list[RecordBatch], plan: ReadPlan) -> None:
        self._where = fetcher.where
        self._window = fetcher.window
        self._batches = batches
        self._plan = plan

    def decoded(self) -> Iterator[pyarrow.RecordBatch]:
        """The records of the range, in pieces of bounded size."""
        plan = self._plan
        return decode_columns(
            self._batches, self._where, self._window, plan.columns, checks_crc=plan.checks_crc
        )


class Reading:
    """What is left to read. Made, used and closed on one loop."""

    __slots__ = ("_fetchers", "_plan", "client")

    def __init__(self, plan: ReadPlan) -> None:
        self._plan = plan
        self.client: Client = client_for(plan.connection, total_s=plan.timeout_s)
        self._fetchers: deque[RangeFetcher] = deque()

    def begin(self, ranges: Mapping[TopicPartition, Window]) -> None:
        """Adds ranges to what is left, and asks for the first."""
        for where, window in ranges.items():
            self._fetchers.append(RangeFetcher(self.client, where, window, self._plan))
        self._fetch_ahead()

    async def next_answer(self) -> Answer | None:
        """What came next, of one partition after the other; None at the end of the last."""
        while self._fetchers:
            fetcher = self._fetchers[0]
            batches = await fetcher.next_batches()
            if batches is not None:
                return Answer(fetcher, batches, self._plan)
            self._fetchers.popleft()
            self._fetch_ahead()
        return None

    def _fetch_ahead(self) -> None:
        for fetcher in list(self._fetchers)[:PARTITIONS_AHEAD]:
            fetcher.fetch_ahead()

    async def close(self) -> None:
        """Gives up what is under way and disconnects."""
        while self._fetchers:
            await self._fetchers.popleft().close()
        await self.client.close()
