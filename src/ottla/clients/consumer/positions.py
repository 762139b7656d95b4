"""Finds the positions of partitions that have none, and checks those that may be gone.

In order: what the user sought, what the group has committed, what the reset policy says. After a
change of leader, whether the new one's history still has what was read (KIP-320).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from ottla.clients.client import Client
from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.consumer.settings import ConsumerSettings, reset_duration_ms
from ottla.clients.consumer.subscription import UNKNOWN, PartitionState, Subscription
from ottla.clients.failures import (
    BrokerTooOld,
    LogTruncated,
    NoCommittedOffset,
    check_answer,
    is_worth_retrying,
)
from ottla.clients.group_offsets import by_topic
from ottla.clients.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_EPOCHS_VERSION_MIN: Final = 2
_CONSUMER_REPLICA: Final = -1

_log = logging.getLogger("ottla.clients.consumer")

Committed = Callable[
    [Iterable[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata]]
]


class Positions:
    """The work of finding positions, one round at a time, in the background."""

    __slots__ = (
        "_client",
        "_committed",
        "_found",
        "_is_closed",
        "_is_wanted",
        "_settings",
        "_subscription",
        "_task",
        "error",
    )

    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        settings: ConsumerSettings,
        committed: Committed | None,
        found: Callable[[], None],
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._settings = settings
        self._committed = committed
        self._found = found
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._is_closed = False
        self.error: OttlaError | None = None
        """What the next poll must raise."""

    def request(self) -> None:
        """Some partition may lack a position: look."""
        self._is_wanted = True
        if not self._is_closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stops looking, for good: who fetches may still ask for it."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait(self) -> None:
        """Returns when the round under way is over."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        failures = 0
        while self._is_wanted:
            self._is_wanted = False
            try:
                await self._round()
                failures = 0
            except (NoCommittedOffset, LogTruncated) as error:
                self.error = error
            except OttlaError as error:
                failures += 1
                self._is_wanted = True
                if not is_worth_retrying(error):
                    self.error = error
                    self._is_wanted = False
                _log.info("positions cannot be found yet: %s", error)
                await asyncio.sleep(self._client.options.retries.wait_s(failures))
            self._found()

    async def _round(self) -> None:
        states = list(self._subscription.states.values())
        await self._from_committed(
            [s for s in states if s.position < 0 and s.reset_to is None and not s.is_looked_up]
        )
        policy = self._settings.auto_offset_reset
        for state in states:
            if state.position < 0 and state.reset_to is None and state.is_looked_up:
                state.reset_to = policy
        await self._reset([state for state in states if state.reset_to is not None])
        await self._validate([state for state in states if state.needs_validation])

    # --- committed

    async def _from_committed(self, states: list[PartitionState]) -> None:
        if not states:
            return
        versions = {state.where: state.version for state in states}
        found: Mapping[TopicPartition, OffsetAndMetadata] = {}
        if self._committed is not None:
            found = await self._committed([state.where for state in states])
        with self._subscription.lock:
            for state in states:
                if state.version != versions[state.where] or state.position >= 0:
                    continue
                at = found.get(state.where)
                if at is None:
                    state.is_looked_up = True
                else:
                    state.move_to(at.offset, at.leader_epoch)

    # --- reset

    async def _reset(self, states: list[PartitionState]) -> None:
        refused = [state.where for state in states if state.reset_to == "none"]
        if refused:
            raise NoCommittedOffset(refused)
        versions = {state.where: state.version for state in states}
        stamps = {state.where: _stamp(state.reset_to or "latest") for state in states}
        for topic, rows in by_topic(stamps).items():
            listed = await list_offsets(
                self._client,
                topic,
                {each.partition: stamps[each] for each in rows},
                committed_only=self._settings.committed_only,
            )
            missing = [each.partition for each in rows if listed[each.partition].offset < 0]
            if missing:  # nothing is as young as that: begin at the end
                listed |= await list_offsets(
                    self._client,
                    topic,
                    dict.fromkeys(missing, LATEST),
                    committed_only=self._settings.committed_only,
                )
            self._apply(rows, versions, listed)

    def _apply(
        self,
        rows: Iterable[TopicPartition],
        versions: Mapping[TopicPartition, int],
        listed: Mapping[int, ListedOffset],
    ) -> None:
        with self._subscription.lock:
            for where in rows:
                state = self._subscription.states.get(where)
                if state is not None and state.version == versions[where]:
                    state.move_to(listed[where.partition].offset)

    # --- validation

    async def _validate(self, states: list[PartitionState]) -> None:
        diverged: dict[TopicPartition, tuple[int, int]] = {}
        for state in states:
            version = state.version
            end = await self._epoch_end(state)
            with self._subscription.lock:
                if state.version != version:
                    continue
                state.needs_validation = False
                if end is None or end >= state.position:
                    continue
                if self._settings.auto_offset_reset == "none":
                    diverged[state.where] = (state.position, end)
                _log.warning("%s was truncated from %s to %s", state.where, state.position, end)
                state.move_to(max(end, 0))
        if diverged:
            raise LogTruncated(diverged)

    async def _epoch_end(self, state: PartitionState) -> int | None:
        """Where the epoch of the last record that was read ends now; None where nobody says."""
        question = OffsetForLeaderPartition(
            partition=state.where.partition,
            current_leader_epoch=state.leader_epoch,
            leader_epoch=state.position_epoch,
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER_REPLICA,
            topics=[OffsetForLeaderTopic(topic=state.where.topic, partitions=[question])],
        )
        try:
            response = await self._client.call(
                request,
                OffsetForLeaderEpochResponse,
                to=await self._client.leader(state.where),
                at_least=_EPOCHS_VERSION_MIN,
            )
        except BrokerTooOld:
            return None
        for topic in response.topics:
            for row in topic.partitions:
                check_answer(row.error_code, f"partition {state.where}")
                return None if row.end_offset == UNKNOWN else row.end_offset
        return None


def _stamp(policy: str) -> int:
    if policy == "earliest":
        return EARLIEST
    duration_ms = reset_duration_ms(policy)
    return LATEST if duration_ms is None else time.time_ns() // 1_000_000 - duration_ms
