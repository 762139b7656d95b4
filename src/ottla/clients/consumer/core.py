"""One consumer behind both of its faces: what it reads, its group, and the polls.

The reader may take in any thread; all else runs on the loop. What a group's rebalance wants of the
user (a listener called, offsets committed) is done inside `poll`, where the caller is.

Invariants:
1. `needs_attention` is true whenever taking alone would not do: a rebalance, an error, a commit
   that is due. A face may skip `poll` only while it is false.
2. Positions are committed of records that an earlier poll has returned, never of the ones that
   this poll will, nor of those that a loop over the consumer has not handed out yet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from ottla.clients.client import Client
from ottla.clients.connection_settings import client_for
from ottla.clients.consumer.classic_member import ClassicMember
from ottla.clients.consumer.commits import Commits, GroupCoordinator
from ottla.clients.consumer.committing import Committing
from ottla.clients.consumer.consumer_member import ConsumerMember
from ottla.clients.consumer.fetcher import Fetcher, FetchEvents
from ottla.clients.consumer.group_place import GroupPlace
from ottla.clients.consumer.group_work import GroupWork
from ottla.clients.consumer.listener import NoListener, RebalanceListener
from ottla.clients.consumer.metrics import ConsumerMetrics
from ottla.clients.consumer.plan import ConsumerPlan
from ottla.clients.consumer.positions import Positions
from ottla.clients.consumer.reader import Reader
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.consumer.subscription import (
    Subscription,
    SubscriptionPattern,
    TakenBatches,
    Wanted,
)
from ottla.clients.consumer.topic_watch import TopicWatch
from ottla.clients.consumer.unreadable import UNREADABLE
from ottla.clients.failures import ClientClosed, WrongUse
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition

LONGEST_WAIT_S: Final = 3600.0

T = TypeVar("T")

_log = logging.getLogger("ottla.clients.consumer")


class ConsumerCore:
    """The consumer. Made on the loop; `call_on_loop` says how to reach it from a thread."""

    __slots__ = (
        "_client",
        "_commits",
        "_fetcher",
        "_is_closed",
        "_member",
        "_plan",
        "_positions",
        "_watch",
        "committing",
        "counters",
        "group",
        "reader",
        "subscription",
    )

    def __init__(
        self,
        plan: ConsumerPlan,
        call_on_loop: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        settings = plan.settings
        self._plan = plan
        self._is_closed = False
        self._client = client_for(
            plan.connection, total_s=max(settings.default_api_timeout_ms / 1000, 0.001)
        )
        self.subscription = Subscription()
        coordinator = GroupCoordinator(
            self._client, settings.group_id, settings.default_api_timeout_ms / 1000
        )
        self._commits: Commits | None = None
        if settings.group_id:
            self._commits = Commits(
                self._client,
                coordinator,
                lambda: self.place,
                waits_for_stable=settings.committed_only,
            )
        self._watch = TopicWatch(
            self._client, self.subscription, plan.connection, settings, self._topics_changed
        )
        self.committing = Committing(
            self._commits, self.subscription, settings, plan.interceptors, self._needs_attention
        )
        self.group = GroupWork(self.subscription, self._watch, self.committing, self._taken_over)
        self._member: ClassicMember | ConsumerMember | None = None
        if settings.group_id:
            kind = ConsumerMember if settings.group_protocol == "consumer" else ClassicMember
            rack = plan.connection.client_rack
            self._member = kind(self.group, self._client, coordinator, settings, rack)
        self._positions = Positions(
            self._client,
            self.subscription,
            settings,
            self._commits.committed if self._commits is not None else None,
            self._positions_found,
        )
        events = FetchEvents(self._something_came, self._watch.look_soon, self._positions.request)
        self.counters = events.counters
        self._fetcher = Fetcher(
            self._client, self.subscription, settings, events, rack=plan.connection.client_rack
        )
        self.reader = Reader(
            plan, self.subscription, self.group, self._fetcher, call_on_loop or _call
        )
        """What polls take."""

    async def start(self) -> None:
        """Reaches the cluster."""
        await self._client.retrying(self._client.refresh)
        self._watch.start()
        self.committing.start_clock()

    # --- what to read

    def subscribe(self, topics: Wanted, listener: RebalanceListener | None) -> None:
        """Reads topics by name or pattern, as the group shares them out."""
        self._check_open()
        self.subscription.check_can(assign=False)
        if self._member is None:
            raise WrongUse("subscribing needs a group_id; without one, assign partitions")
        if isinstance(topics, SubscriptionPattern) and isinstance(self._member, ClassicMember):
            raise WrongUse(
                "brokers match patterns for group_protocol='consumer' only; "
                "otherwise subscribe to a compiled re.Pattern, which is matched here"
            )
        self.subscription.set_topics(topics)
        self.group.listener = listener or NoListener()
        self.group.polled_at = time.monotonic()
        self._member.resubscribed()

    async def unsubscribe(self) -> None:
        """Reads nothing any more, and leaves the group."""
        self._check_open()
        if self.subscription.is_by_group and self._member is not None:
            await self.group.driving(self._member.leave())
        self.subscription.set_topics(())
        self.subscription.was_assigned = False
        self.subscription.set_partitions(())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these, whatever others read."""
        self._check_open()
        self.subscription.check_can(assign=True)
        self.subscription.was_assigned = True
        self.subscription.set_partitions(partitions)
        self._taken_over()

    # --- the caller's side: any thread

    @property
    def needs_attention(self) -> bool:
        """Whether a poll must go through the loop."""
        return self.group.needs_attention

    # --- polls

    async def poll(self, timeout_s: float, count: int | None) -> list[ConsumerRecord]:
        """Records as soon as there are some; none after `timeout_s`."""
        return await self._poll(timeout_s, lambda: self.reader.take(count))

    async def poll_batches(
        self, timeout_s: float, count: int, size_bytes: int
    ) -> list[TakenBatches]:
        """The same, but batches."""
        return await self._poll(timeout_s, lambda: self.reader.take_batches(count, size_bytes))

    async def _poll(self, timeout_s: float, take: Callable[[], list[T]]) -> list[T]:
        self._check_open()
        deadline = time.monotonic() + min(timeout_s, LONGEST_WAIT_S)
        while True:
            self.group.polled_at = time.monotonic()
            self.group.news.clear()
            await self._attend()
            try:
                taken = take()
            except UNREADABLE as error:
                await self.reader.met(error)
                continue
            if taken or not await self._wait_for_news(deadline):
                return taken

    async def _wait_for_news(self, deadline: float) -> bool:
        """Waits until something may have come; False if it is too late for that."""
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        try:
            async with asyncio.timeout(left_s):
                await self.group.news.wait()
        except TimeoutError:
            pass
        return True

    async def _attend(self) -> None:
        """Everything that must happen while the caller is here."""
        group = self.group
        group.needs_attention = False
        await group.run_jobs()
        self.raise_errors()
        if not (self.subscription.is_by_group or self.subscription.was_assigned):
            raise WrongUse("subscribe to topics or assign partitions before polling")
        self.committing.commit_if_due()
        if self.subscription.is_by_group and self._member is not None:
            await self._watch.ready()
            self._member.polled()
            if not self._member.is_settled:
                group.needs_attention = True

    def raise_errors(self) -> None:
        """Raises what went wrong in the background, once."""
        error = self.group.error or self._fetcher.error or self._positions.error
        if error is not None:
            self.group.error = self._fetcher.error = self._positions.error = None
            raise error

    # --- events

    def _needs_attention(self) -> None:
        self.group.needs_attention = True

    def _something_came(self) -> None:
        if self._fetcher.error is not None or self._positions.error is not None:
            self.group.needs_attention = True
        self.group.news.set()

    def _positions_found(self) -> None:
        self._fetcher.wake()
        self._something_came()

    def _taken_over(self) -> None:
        self._watch.look_soon()
        self._positions.request()
        self.group.attend()

    def _topics_changed(self, counts: dict[str, int] | None) -> None:
        """The picture is new; `counts` are those of the wanted topics, None if others are."""
        self._fetcher.wake()
        if self._member is not None and self.subscription.is_by_group:
            if counts is None:
                self._member.resubscribed()
            else:
                self._member.partitions_changed(counts)

    # --- for operations

    @property
    def place(self) -> GroupPlace:
        """Who this consumer is in its group."""
        if self.subscription.is_by_group and self._member is not None:
            return self._member.place
        if not self._plan.settings.group_id:
            raise WrongUse("the consumer has no group_id")
        return GroupPlace(self._plan.settings.group_id)

    @property
    def client(self) -> Client:
        """For calls that are not about what is read."""
        self._check_open()
        return self._client

    @property
    def settings(self) -> ConsumerSettings:
        """As they were given."""
        return self._plan.settings

    def request_positions(self) -> None:
        """Some position was given up: find another."""
        self._positions.request()
        self._fetcher.wake()

    def metrics(self) -> ConsumerMetrics:
        """What was done so far."""
        states = list(self.subscription.states.values())
        counters = self.counters
        return ConsumerMetrics(
            records_returned=counters.records_returned,
            bytes_fetched=counters.bytes_fetched,
            fetches=counters.fetches,
            polls=counters.polls,
            commits=self.committing.count,
            rebalances=self.group.rebalances,
            buffered_bytes=sum(state.buffered_bytes for state in states),
            lag={state.where: state.lag for state in states if state.lag is not None},
        )

    # --- the end

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("consumer")

    async def close(self, timeout_s: float | None) -> None:
        """Commits, leaves the group and disconnects, within `timeout_s`."""
        if self._is_closed:
            return
        self._is_closed = True
        self.group.needs_attention = True
        try:
            async with asyncio.timeout(timeout_s):
                if self.subscription.is_by_group and self._member is not None:
                    await self.group.driving(self._member.leave())
                elif self.committing.is_automatic:
                    await self.committing.commit_quietly()
                await self.committing.settle()
        except (OttlaError, TimeoutError) as error:
            _log.warning("the consumer closes in spite of: %s", error or "time")
        finally:
            await self._release()

    async def _release(self) -> None:
        if self._member is not None:
            await self._member.close()
        await self.committing.close()
        await self._positions.close()
        await self._fetcher.close()
        await self._watch.close()
        await self._client.close()


def _call(function: Callable[[], None]) -> None:
    function()
