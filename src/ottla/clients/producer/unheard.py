"""Failed sends whose result nobody took: kept until somebody is told of them, within a limit.

Whether a result was taken is asked as late as possible: whoever holds a delivery may still ask it.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from ottla.clients.failures import FailedSend, SendsFailed
from ottla.clients.producer.batch import ProducerBatch
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition

BATCHES_KEPT_MAX: Final = 256
"""Of more failed batches than this only the number of records is kept."""


_log = logging.getLogger("ottla.clients.producer")


class Unheard:
    """What failed, and is not told. Used on the loop."""

    __slots__ = ("_batches", "_first", "_more")

    def __init__(self) -> None:
        self._batches: deque[tuple[ProducerBatch, OttlaError]] = deque()
        self._more = 0
        self._first: FailedSend | None = None

    def add(self, batch: ProducerBatch, error: OttlaError) -> None:
        """A batch was given up."""
        if not batch.unheard_count():
            return
        self._batches.append((batch, error))
        if len(self._batches) > BATCHES_KEPT_MAX:
            sends = _failed(*self._batches.popleft())
            self._more += sends.record_count
            self._first = self._first or sends

    def forget(self) -> None:
        """The caller knows: by the error of a transaction, or since it was aborted."""
        self._batches.clear()
        self._more = 0
        self._first = None

    def take(self) -> SendsFailed | None:
        """The error for all that nobody has heard of until now, once."""
        kept = [_failed(batch, error) for batch, error in self._batches]
        failures = [sends for sends in kept if sends.record_count]
        more = self._more
        if self._first is not None:
            failures.insert(0, self._first)
            more -= self._first.record_count
        self.forget()
        return SendsFailed(failures, more) if failures else None

    def tell(self) -> None:
        """Raises and logs it, once."""
        error = self.take()
        if error is not None:
            _log.warning("%s", error)
            raise error


def _failed(batch: ProducerBatch, error: OttlaError) -> FailedSend:
    where = TopicPartition(batch.topic, batch.partition)
    return FailedSend(where, batch.unheard_count(), error)
