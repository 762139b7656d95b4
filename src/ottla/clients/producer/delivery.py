"""What send returns: a promise of where a record will be. Costs nothing until it is looked at."""

from __future__ import annotations

from collections.abc import Generator

import msgspec

from ottla.clients.failures import DeliveryNotKnown
from ottla.clients.producer.batch import ProducerBatch, RecordMetadata
from ottla.errors import OttlaError


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A record's way to the broker, for threads: ask it, or wait for it."""

    batch: ProducerBatch
    index: int

    @property
    def is_done(self) -> bool:
        """Whether it is known what became of the record."""
        return self.batch.is_done

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Waits for the broker's word; raises why the record was not written."""
        batch = self.batch
        if not batch.is_done:
            batch.asked.add(self.index)
            is_known = False
            try:
                is_known = batch.wait(timeout_s)
            finally:
                if not is_known:
                    batch.asked.discard(self.index)
            if not is_known:
                raise DeliveryNotKnown(timeout_s or 0.0)
        return _taken(batch, self.index)

    def exception(self, timeout_s: float | None = None) -> OttlaError | None:
        """Waits for the broker's word, and returns why the record was not written, if so."""
        try:
            self.result(timeout_s)
        except DeliveryNotKnown:
            raise
        except OttlaError as error:
            return error
        return None


class AwaitableDelivery(msgspec.Struct, frozen=True, gc=False):
    """A record's way to the broker, for asyncio: `await` it for the metadata."""

    batch: ProducerBatch
    index: int

    @property
    def is_done(self) -> bool:
        """Whether it is known what became of the record."""
        return self.batch.is_done

    def __await__(self) -> Generator[None, None, RecordMetadata]:
        batch = self.batch
        if not batch.is_done:
            batch.asked.add(self.index)
            try:
                yield from batch.wait_done().__await__()
            except BaseException:
                batch.asked.discard(self.index)
                raise
        return _taken(batch, self.index)


def _taken(batch: ProducerBatch, index: int) -> RecordMetadata:
    """What became of the record; of a failure is then known that somebody heard of it."""
    try:
        return batch.metadata(index)
    except OttlaError:
        batch.asked.add(index)
        raise
