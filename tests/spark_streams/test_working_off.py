"""A query with timers by the wall clock has worked off what was there, though it goes on and on."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from ottla.streams.spark.working_off import work_off

Batch = tuple[int, int]
"""The offsets between which a micro-batch has read."""


class Failed(Exception):
    """What has ended the query."""


class Clocked:
    """A query in whose pauses one more micro-batch is reported, until it fails."""

    def __init__(self, *batches: Batch) -> None:
        self.batches: Sequence[Batch] = batches
        self.reported = 0

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's names, as those below
        return self.reported <= len(self.batches)

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        if self.reported == 0:
            return None
        start, end = self.batches[self.reported - 1]
        source = {"startOffset": {"topic": {"0": start}}, "endOffset": {"topic": {"0": end}}}
        return {"timestamp": f"00:00:{self.reported:02}", "sources": [source]}

    def awaitTermination(self) -> None:  # noqa: N802
        raise Failed

    def work_off(self) -> None:
        def pause(seconds: float) -> None:
            self.reported += 1

        work_off(cast(StreamingQuery, self), has_clock=True, pause=pause)


def test_it_is_done_with_a_micro_batch_that_found_nothing() -> None:
    query = Clocked((0, 5), (5, 8), (8, 8), (8, 8))
    query.work_off()
    assert query.reported == 3


def test_a_micro_batch_that_may_have_looked_before_does_not_count() -> None:
    query = Clocked((5, 5), (5, 8), (8, 8), (8, 8))
    query.work_off()
    assert query.reported == 3


def test_what_ends_the_query_is_raised() -> None:
    with pytest.raises(Failed):
        Clocked((0, 5), (5, 8)).work_off()
