"""When and what a consumer commits: asked to, in the background, by the clock, at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.clients.consumer.commits import Commits
from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.consumer.interceptors import ConsumerInterceptor
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.consumer.subscription import Subscription
from ottla.clients.failures import CommitRefused, WrongUse
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition

_log = logging.getLogger("ottla.clients.consumer")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, OttlaError | None], object]


class Committing:
    """Commits what polls have returned."""

    __slots__ = (
        "_commits",
        "_due",
        "_interceptors",
        "_settings",
        "_subscription",
        "_tasks",
        "_timer",
        "count",
        "is_automatic",
    )

    def __init__(
        self,
        commits: Commits | None,
        subscription: Subscription,
        settings: ConsumerSettings,
        interceptors: Sequence[ConsumerInterceptor],
        due: Callable[[], None],
    ) -> None:
        self._commits = commits
        self._subscription = subscription
        self._settings = settings
        self._interceptors = interceptors
        self._due = due
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_automatic = settings.enable_auto_commit and commits is not None
        self.count = 0

    @property
    def commits(self) -> Commits:
        """The group's offsets."""
        if self._commits is None:
            raise WrongUse("committing needs a group_id")
        return self._commits

    def consumed(self, partitions: Iterable[TopicPartition] | None = None) -> Offsets:
        """Where to go on after what polls have returned."""
        only = None if partitions is None else set(partitions)
        return {
            where: OffsetAndMetadata(position, leader_epoch=epoch)
            for where, (position, epoch) in self._subscription.positions().items()
            if only is None or where in only
        }

    async def commit(self, offsets: Offsets | None) -> None:
        """Commits, by default everything that polls have returned."""
        chosen = self.consumed() if offsets is None else offsets
        await self.settle()  # an earlier commit that arrives later would take the group back
        await self._commit(chosen)

    async def _commit(self, chosen: Offsets) -> None:
        await self.commits.commit(chosen)
        self.count += 1
        for interceptor in self._interceptors:
            interceptor.on_commit(chosen)

    def commit_in_background(
        self, offsets: Offsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commits without waiting; `callback` hears what came of it."""
        chosen = self.consumed() if offsets is None else dict(offsets)
        earlier = set(self._tasks)

        async def run() -> None:
            error: OttlaError | None = None
            if earlier:
                await asyncio.wait(earlier)
            try:
                await self._commit(chosen)
            except OttlaError as problem:
                error = problem
                _log.info("an offset commit failed: %s", problem)
            if callback is not None:
                callback(chosen, error)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def commit_quietly(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Commits where nobody could do anything about a failure."""
        try:
            async with asyncio.timeout(self._settings.default_api_timeout_ms / 1000):
                await self.commit(self.consumed(partitions))
        except CommitRefused as error:
            _log.info("%s", error)
        except (OttlaError, TimeoutError) as error:
            _log.warning("offsets could not be committed: %s", error)

    # --- by the clock

    def start_clock(self) -> None:
        """Says from now on when a commit is due."""
        if self.is_automatic:
            interval_s = self._settings.auto_commit_interval_ms / 1000
            self._timer = asyncio.get_running_loop().call_later(interval_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._due()

    def commit_if_due(self) -> None:
        """In a poll: commits what earlier polls have returned, if it is time."""
        if self.is_automatic and self._timer is None:
            self.commit_in_background()
            self.start_clock()

    async def settle(self) -> None:
        """Waits for what is under way."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def close(self) -> None:
        """Stops the clock, and gives up what is under way."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
