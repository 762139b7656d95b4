"""A member of a group whose broker assigns (KIP-848): one heartbeat says and brings everything.

    heartbeat(epoch 0, topics) → epoch, assignment → give up, take over → heartbeat(what is owned)

Invariants:
1. What the broker takes away is given up before it is told so; what it gives is read after.
2. A heartbeat says only what changed since the last one that was answered; after any failure it
   says everything again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import uuid
from typing import Final

from ottla.clients.client import Client
from ottla.clients.consumer.commits import COORDINATOR_LANE, GroupCoordinator
from ottla.clients.consumer.group_place import GroupPlace
from ottla.clients.consumer.membership import Host
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.failures import Fenced, check_answer, error_code, is_worth_retrying
from ottla.clients.group_offsets import by_topic
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_A_WHILE_EPOCH: Final = -2
"""A static member that will be back."""
_FIRST_VERSION_WITH_PATTERNS: Final = 1
_GRACE_S: Final = 5.0
_FORGOTTEN: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)

_log = logging.getLogger("ottla.clients.consumer.group")


class ConsumerMember:
    """One member."""

    __slots__ = (
        "_client",
        "_coordinator",
        "_epoch",
        "_failures",
        "_heartbeats",
        "_host",
        "_is_closed",
        "_member_id",
        "_rack",
        "_reconciling",
        "_said_expression",
        "_said_owned",
        "_said_topics",
        "_settings",
        "_target",
        "_wake",
        "_was_lost",
    )

    def __init__(
        self,
        host: Host,
        client: Client,
        coordinator: GroupCoordinator,
        settings: ConsumerSettings,
        rack: str,
    ) -> None:
        self._host = host
        self._client = client
        self._coordinator = coordinator
        self._settings = settings
        self._rack = rack
        self._member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._epoch = JOIN_EPOCH
        self._said_topics: frozenset[str] | None = None
        self._said_expression: str | None = None
        self._said_owned: frozenset[TopicPartition] | None = None
        self._target: frozenset[TopicPartition] | None = None
        self._failures = 0
        self._was_lost = False
        self._is_closed = False
        self._wake = asyncio.Event()
        self._heartbeats: asyncio.Task[None] | None = None
        self._reconciling: asyncio.Task[None] | None = None

    @property
    def place(self) -> GroupPlace:
        """Who this member is now."""
        return GroupPlace(self._settings.group_id, self._epoch, self._member_id, self._instance_id)

    @property
    def _instance_id(self) -> str | None:
        return self._settings.group_instance_id or None

    @property
    def is_settled(self) -> bool:
        """Whether it reads what the broker wants it to."""
        return (
            self._epoch > JOIN_EPOCH
            and not self._was_lost
            and self._target == self._host.owned()
            and (self._reconciling is None or self._reconciling.done())
        )

    def polled(self) -> None:
        """Joins, and goes on with what waits for the caller."""
        if self._is_closed:
            return
        if self._heartbeats is None or self._heartbeats.done():
            self._heartbeats = asyncio.create_task(self._keep_alive())
        if self._reconciling is None or self._reconciling.done():
            has_news = self._target is not None and self._target != self._host.owned()
            if self._was_lost or has_news:
                self._reconciling = asyncio.create_task(self._reconcile())

    def resubscribed(self) -> None:
        """The topics changed: say so now."""
        self._wake.set()
        self._host.attend()

    def partitions_changed(self, counts: dict[str, int]) -> None:
        """The broker sees that by itself."""
        del counts

    async def leave(self) -> None:
        """Gives everything up and says good-bye."""
        await self._stop(self._reconciling)
        await self._host.give_up(self._host.owned())
        await self._stop(self._heartbeats)
        if self._epoch > JOIN_EPOCH:
            static = self._instance_id is not None
            self._epoch = LEAVE_FOR_A_WHILE_EPOCH if static else LEAVE_EPOCH
            try:
                await self._beat(timeout_s=_GRACE_S)
            except OttlaError as error:
                _log.info("group %s: left without a word: %s", self._settings.group_id, error)
        self._forget()

    async def close(self) -> None:
        """Stops all tasks."""
        self._is_closed = True
        await self._stop(self._reconciling)
        await self._stop(self._heartbeats)

    async def _stop(self, task: asyncio.Task[None] | None) -> None:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _forget(self) -> None:
        self._epoch = JOIN_EPOCH
        self._said_topics = self._said_owned = self._target = None

    # --- heartbeats

    async def _keep_alive(self) -> None:
        wait_s = 0.0
        while not self._is_closed:
            self._wake.clear()
            if self._host.since_poll_s() > self._settings.max_poll_interval_ms / 1000:
                await self._go_silent()
                return
            wait_s = await self._beat_carefully()
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _go_silent(self) -> None:
        _log.warning("group %s: no poll in time, leaving", self._settings.group_id)
        self._epoch = LEAVE_EPOCH
        try:
            await self._beat(timeout_s=_GRACE_S)
        except OttlaError:
            pass
        self._forget()
        self._was_lost = True
        self._host.attend()

    async def _beat_carefully(self) -> float:
        """One heartbeat; returns how long to wait for the next."""
        try:
            response = await self._beat(timeout_s=self._settings.session_timeout_ms / 1000)
            self._epoch = response.member_epoch
            if response.assignment is not None:
                await self._set_target(response)
        except OttlaError as error:
            return self._failed(error)
        self._failures = 0
        return response.heartbeat_interval_ms / 1000

    def _failed(self, error: OttlaError) -> float:
        self._said_topics = self._said_owned = None
        self._failures += 1
        wait_s = self._client.options.retries.wait_s(self._failures)
        if error.code in _FORGOTTEN:
            self._was_lost = bool(self._host.owned())
            self._forget()
            self._host.attend()
            return 0.0 if self._failures == 1 else wait_s
        if error.code == ErrorCode.UNRELEASED_INSTANCE_ID or is_worth_retrying(error):
            self._coordinator.forget()
            return wait_s
        self._host.fail(error)
        self._is_closed = True
        return 0.0

    async def _beat(self, *, timeout_s: float) -> ConsumerGroupHeartbeatResponse:
        topics, owned = self._host.wanted_topics(), self._host.owned()
        expression = self._host.wanted_expression()
        request = self._request(topics, owned)
        self._add_expression(request, expression)
        response = await self._client.call(
            request,
            ConsumerGroupHeartbeatResponse,
            to=await self._coordinator.find(),
            at_least=0 if expression is None else _FIRST_VERSION_WITH_PATTERNS,
            timeout_s=timeout_s,
            lane=COORDINATOR_LANE,
        )
        if error_code(response.error_code) == ErrorCode.FENCED_INSTANCE_ID:
            raise Fenced(self._instance_id or "", ErrorCode.FENCED_INSTANCE_ID)
        about = f"group {self._settings.group_id!r}"
        check_answer(response.error_code, about, response.error_message)
        self._said_topics, self._said_owned, self._said_expression = topics, owned, expression
        return response

    def _add_expression(
        self, request: ConsumerGroupHeartbeatRequest, expression: str | None
    ) -> None:
        """Says which pattern the broker shall match; an empty one takes the last one back."""
        is_news = self._said_topics is None or expression != self._said_expression
        if self._epoch >= JOIN_EPOCH and is_news:
            request.subscribed_topic_regex = expression
            if expression is not None:
                # Even if the answer is lost: the broker may have it, and must be told otherwise.
                self._said_expression = expression
            elif self._said_expression is not None:
                request.subscribed_topic_regex = ""

    def _request(
        self, topics: frozenset[str], owned: frozenset[TopicPartition]
    ) -> ConsumerGroupHeartbeatRequest:
        settings = self._settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._instance_id,
        )
        if self._epoch < JOIN_EPOCH:
            return request
        if self._said_topics is None:
            request.rack_id = self._rack or None
            request.rebalance_timeout_ms = settings.max_poll_interval_ms
            request.server_assignor = settings.group_remote_assignor or None
        if topics != self._said_topics:
            request.subscribed_topic_names = sorted(topics)
        if self._epoch == JOIN_EPOCH:
            request.topic_partitions = []
        elif owned != self._said_owned:
            request.topic_partitions = self._by_id(owned)
        return request

    def _by_id(self, owned: frozenset[TopicPartition]) -> list[TopicPartitions]:
        known = self._client.picture.topics
        return [
            TopicPartitions(topic_id=known[topic].id, partitions=[each.partition for each in rows])
            for topic, rows in by_topic(owned).items()
            if topic in known
        ]

    # --- reconciling

    async def _set_target(self, response: ConsumerGroupHeartbeatResponse) -> None:
        assert response.assignment is not None
        rows = response.assignment.topic_partitions
        names = await self._host.names_of([row.topic_id for row in rows])
        self._target = frozenset(
            TopicPartition(names[row.topic_id], partition)
            for row in rows
            if row.topic_id in names
            for partition in row.partitions
        )
        self._host.attend()

    async def _reconcile(self) -> None:
        try:
            if self._was_lost:
                await self._host.lose(self._host.owned())
                self._was_lost = False
            while self._target is not None and self._target != self._host.owned():
                target = self._target
                gone = self._host.owned() - target
                if gone:
                    await self._host.give_up(gone)
                    self._wake.set()
                else:
                    await self._host.take_over(target)
        except OttlaError as error:
            self._host.fail(error)
        self._wake.set()
        self._host.attend()
