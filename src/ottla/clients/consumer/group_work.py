"""What a group's rebalances want of the consumer and its user, done where the user polls.

A membership decides in the background; here its wishes become jobs that the next poll does: commit,
call the listener, read other partitions.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from ottla.clients.callers_thread import in_callers_thread
from ottla.clients.consumer.assignors import Racks
from ottla.clients.consumer.committing import Committing
from ottla.clients.consumer.listener import NoListener, RebalanceListener
from ottla.clients.consumer.subscription import Subscription
from ottla.clients.consumer.topic_watch import TopicWatch
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition

Job = tuple[Callable[[], Awaitable[None]], asyncio.Future[None]]


class GroupWork:
    """The host of a membership (see membership.Host)."""

    __slots__ = (
        "_committing",
        "_jobs",
        "_subscription",
        "_taken",
        "_watch",
        "error",
        "listener",
        "needs_attention",
        "news",
        "polled_at",
        "rebalances",
    )

    def __init__(
        self,
        subscription: Subscription,
        watch: TopicWatch,
        committing: Committing,
        taken: Callable[[], None],
    ) -> None:
        self._subscription = subscription
        self._watch = watch
        self._committing = committing
        self._taken = taken
        self._jobs: deque[Job] = deque()
        self.listener: RebalanceListener = NoListener()
        self.news = asyncio.Event()
        """Something came that a waiting poll should look at."""
        self.needs_attention = True
        self.error: OttlaError | None = None
        self.polled_at = time.monotonic()
        self.rebalances = 0

    # --- for whoever polls

    async def run_jobs(self) -> None:
        """Does what waits for the caller; what the listener raises is the caller's."""
        while self._jobs:
            work, future = self._jobs.popleft()
            if future.done():
                continue
            try:
                await work()
            finally:
                if not future.done():
                    future.set_result(None)

    async def driving(self, work: Awaitable[None]) -> None:
        """Waits for work that may want something done in a poll, and does it here."""
        task = asyncio.ensure_future(work)
        running: set[asyncio.Future[Any]] = {task}
        try:
            while not task.done():
                self.news.clear()
                await self.run_jobs()
                news = asyncio.ensure_future(self.news.wait())
                running = {task, news}
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
            task.result()
        finally:  # whoever waits here may be cancelled in the middle: both must end then
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _in_poll(self, work: Callable[[], Awaitable[None]]) -> None:
        """Has work done by whoever polls, and waits for that."""
        future = asyncio.get_running_loop().create_future()
        self._jobs.append((work, future))
        self.attend()
        await future

    # --- what the membership asks

    def wanted_topics(self) -> frozenset[str]:
        """The topics subscribed to, with those a pattern matches now."""
        return self._watch.topics()

    def wanted_expression(self) -> str | None:
        """The pattern that the broker shall match, if there is one."""
        return self._subscription.expression

    def owned(self) -> frozenset[TopicPartition]:
        """What is read now."""
        return frozenset(self._subscription.states)

    async def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Commits for these, tells the listener, and reads them no more."""
        if not partitions:
            return
        gone = sorted(partitions)

        async def tell() -> None:
            if self._committing.is_automatic:
                await self._committing.commit_quietly(gone)
            await in_callers_thread(self.listener.on_revoked, gone)

        await self._in_poll(tell)
        self._drop(gone)

    async def lose(self, partitions: Collection[TopicPartition]) -> None:
        """They are somebody else's already."""
        gone = sorted(partitions)
        self._drop(gone)
        if gone:
            await self._in_poll(lambda: in_callers_thread(self.listener.on_lost, gone))

    async def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Reads exactly these, and tells the listener of the new ones."""
        new = sorted(set(partitions) - set(self._subscription.states))
        self.rebalances += 1

        async def tell() -> None:
            # In their own order: that of a set changes from one run to the next.
            self._subscription.set_partitions(sorted(partitions))
            await in_callers_thread(self.listener.on_assigned, new)

        await self._in_poll(tell)
        self._taken()

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each of the topics has."""
        return await self._watch.counts(topics)

    def partition_racks(self, topics: Collection[str]) -> Racks:
        """In which racks the replicas of the topics' partitions are, as last seen."""
        return self._watch.racks(topics)

    async def names_of(self, ids: Collection[bytes]) -> dict[bytes, str]:
        """The names of topics by their ids, as far as they are known."""
        return await self._watch.names_of(ids)

    def attend(self) -> None:
        """The next poll must look after the group."""
        self.needs_attention = True
        self.news.set()

    def since_poll_s(self) -> float:
        """How long ago the last poll was."""
        return time.monotonic() - self.polled_at

    def fail(self, error: OttlaError) -> None:
        """The membership is over; the next poll raises this."""
        self.error = error
        self.attend()

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        left = [where for where in self._subscription.states if where not in partitions]
        self._subscription.set_partitions(left)
