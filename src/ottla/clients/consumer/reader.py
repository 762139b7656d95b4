"""What polls take of what was fetched, and what happens where something cannot be read.

Taking may be done in any thread; `met` and `skip` run on the loop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from operator import length_hint

from ottla.clients.callers_thread import in_callers_thread
from ottla.clients.consumer.fetcher import Fetcher
from ottla.clients.consumer.group_work import GroupWork
from ottla.clients.consumer.plan import ConsumerPlan
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.consumer.subscription import Subscription, TakenBatches
from ottla.clients.consumer.unreadable import Unreadable
from ottla.model.ids import TopicPartition

_log = logging.getLogger("ottla.clients.consumer")


class Reader:
    """The caller's side of a consumer."""

    __slots__ = ("_fetcher", "_group", "_on_loop", "_plan", "_subscription", "counters")

    def __init__(
        self,
        plan: ConsumerPlan,
        subscription: Subscription,
        group: GroupWork,
        fetcher: Fetcher,
        on_loop: Callable[[Callable[[], None]], object],
    ) -> None:
        self._plan = plan
        self._subscription = subscription
        self._group = group
        self._fetcher = fetcher
        self._on_loop = on_loop
        self.counters = fetcher.counters

    def take(self, count: int | None) -> list[ConsumerRecord]:
        """Records that are here already; moves the positions."""
        self._group.polled_at = time.monotonic()
        limit = count or self._plan.settings.max_poll_records
        if length_hint(self._subscription.iterated) and (
            rest := self._subscription.take_rest(limit)
        ):
            return rest
        records, has_room = self._subscription.take(limit, self._plan.decoding)
        if has_room:
            self._on_loop(self._fetcher.wake)
        counters = self.counters
        counters.polls += 1
        counters.records_returned += len(records)
        return self._intercepted(records) if self._plan.interceptors else records

    def _intercepted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        seen = records
        try:
            for interceptor in self._plan.interceptors:
                seen = interceptor.on_consume(seen)
        except BaseException:
            self.give_back(records)
            raise
        return seen

    def give_back(self, records: list[ConsumerRecord] | None = None) -> None:
        """What was taken, or what a loop over the consumer has left, comes again."""
        self._subscription.give_back(records)
        self.look_again()

    def take_batches(self, count: int, size_bytes: int) -> list[TakenBatches]:
        """As `take`, but batches: for whoever decodes them in another way."""
        self._group.polled_at = time.monotonic()
        self._fetcher.partition_bytes = self._plan.table_fetch_bytes
        if length_hint(self._subscription.iterated):
            self.give_back()
        found, has_room = self._subscription.take_batches(count, size_bytes)
        if has_room:
            self._on_loop(self._fetcher.wake)
        self.counters.polls += 1
        return found

    async def met(self, error: Unreadable) -> None:
        """Something cannot be read: raises, or hears the user's word and goes on behind it."""
        choice = self._plan.on_error
        if choice == "raise":
            raise error
        if choice == "skip":
            _log.warning("left out: %s", error)
        elif callable(choice):
            await in_callers_thread(choice, error)
        self.skip(error)

    def skip(self, error: Unreadable) -> None:
        """Goes on behind what could not be read, unless reading went on elsewhere already."""
        state = self._subscription.states.get(TopicPartition(error.topic, error.partition))
        if state is not None:
            with self._subscription.lock:
                state.skip(error)
            self._fetcher.wake()

    def look_again(self) -> None:
        """Some position was moved: fetch from there."""
        self._on_loop(self._fetcher.wake)
