"""Waits until a query has worked off what there is. Runs on the driver."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.streams.spark.progress import is_idle

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Pause = Callable[[float], None]
_LOOK_S: Final = 0.1


def work_off(query: StreamingQuery, *, has_clock: bool, pause: Pause = time.sleep) -> None:
    """Returns when the query has done all that was there; raises what made it fail."""
    if has_clock:
        _wait_for_idle_batch(query, pause)
    else:
        query.processAllAvailable()


def _wait_for_idle_batch(query: StreamingQuery, pause: Pause) -> None:
    """For timers by the wall clock there is always a next micro-batch: Spark's wait would not end.

    The first micro-batch that is reported from now on may have looked for records before now.
    """
    last, news = _when(query), 0
    while query.isActive:
        if (when := _when(query)) != last:
            last, news = when, news + 1
        if news > 1 and is_idle(query.lastProgress):
            return
        pause(_LOOK_S)
    query.awaitTermination()  # raises what has ended it


def _when(query: StreamingQuery) -> str | None:
    report = query.lastProgress
    return None if report is None else str(report["timestamp"])
