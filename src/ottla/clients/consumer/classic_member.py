"""A member of a classic group: joins, is told or works out who reads what, and keeps saying so.

    polled → (give up what must go) → JoinGroup → the leader assigns → SyncGroup → take over
             ↑______ heartbeat: a rebalance is under way, or the group does not know us any more

Invariants:
1. Joining runs only while somebody polls; heartbeats run beside it, in another lane.
2. With eager assignors everything is given up before a join; with cooperative ones only what the
   new assignment takes away, and then the group is joined once more.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

from ottla.clients.client import Client
from ottla.clients.consumer.assignors import ASSIGNORS, COOPERATIVE
from ottla.clients.consumer.classic_requests import (
    heartbeat_request,
    join_request,
    leave_request,
    protocol,
    sync_request,
)
from ottla.clients.consumer.commits import COORDINATOR_LANE, GroupCoordinator
from ottla.clients.consumer.embedded import (
    assignment_bytes,
    assignment_from,
    member_from,
)
from ottla.clients.consumer.group_place import GroupPlace
from ottla.clients.consumer.membership import Host
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.failures import (
    Fenced,
    check_answer,
    error_code,
    is_worth_retrying,
    refusal,
)
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequestAssignment, SyncGroupResponse

JOIN_LANE: Final = "join"
_GRACE_S: Final = 5.0
_FORGOTTEN: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
_NO_GENERATION: Final = -1

_log = logging.getLogger("ottla.clients.consumer.group")


class ClassicMember:
    """One member."""

    __slots__ = (
        "_assigned",
        "_client",
        "_coordinator",
        "_counts",
        "_generation",
        "_heartbeats",
        "_host",
        "_is_closed",
        "_is_cooperative",
        "_joining",
        "_member_id",
        "_needs_join",
        "_rack",
        "_settings",
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
        self._is_cooperative = all(name in COOPERATIVE for name in settings.assignors)
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._assigned: tuple[TopicPartition, ...] = ()
        self._counts: dict[str, int] = {}
        self._needs_join = True
        self._was_lost = False
        self._is_closed = False
        self._joining: asyncio.Task[None] | None = None
        self._heartbeats: asyncio.Task[None] | None = None

    @property
    def place(self) -> GroupPlace:
        """Who this member is now."""
        return GroupPlace(
            self._settings.group_id, self._generation, self._member_id, self._instance_id
        )

    @property
    def _instance_id(self) -> str | None:
        return self._settings.group_instance_id or None

    @property
    def is_settled(self) -> bool:
        """Whether it has its partitions and nobody wants to change that."""
        return not self._needs_join and (self._joining is None or self._joining.done())

    def polled(self) -> None:
        """Joins, if that is due."""
        is_joining = self._joining is not None and not self._joining.done()
        if self._needs_join and not self._is_closed and not is_joining:
            self._joining = asyncio.create_task(self._rebalance())

    def resubscribed(self) -> None:
        """The topics or their partitions changed: the group must assign anew."""
        self._needs_join = True
        self._host.attend()

    async def leave(self) -> None:
        """Gives everything up and says good-bye; a static member only goes silent."""
        await self._stop(self._joining)
        await self._host.give_up(self._host.owned())
        await self._stop(self._heartbeats)
        if self._member_id and self._instance_id is None:
            await self._say_goodbye()
        self._forget()

    async def close(self) -> None:
        """Stops all tasks."""
        self._is_closed = True
        await self._stop(self._joining)
        await self._stop(self._heartbeats)

    async def _stop(self, task: asyncio.Task[None] | None) -> None:
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _forget(self) -> None:
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._needs_join = True

    # --- joining

    async def _rebalance(self) -> None:
        failures = 0
        while self._needs_join and not self._is_closed:
            try:
                await self._join_once()
                failures = 0
            except OttlaError as error:
                failures += 1
                if not self._may_go_on(error):
                    self._needs_join = False
                    self._host.fail(error)
                    return
                self._needs_join = True
                if error.code == ErrorCode.MEMBER_ID_REQUIRED:
                    continue
                _log.info("group %s: joining again: %s", self._settings.group_id, error)
                await asyncio.sleep(self._client.options.retries.wait_s(failures) / 2)
        self._host.attend()

    def _may_go_on(self, error: OttlaError) -> bool:
        """Whether joining again can help, and with what of the old place."""
        if error.code == ErrorCode.MEMBER_ID_REQUIRED or error.code in _FORGOTTEN:
            return True
        if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
            return True
        if is_worth_retrying(error):
            self._coordinator.forget()
            return True
        return False

    async def _join_once(self) -> None:
        owned = self._host.owned()
        if self._was_lost and owned:
            await self._host.lose(owned)
        elif not self._is_cooperative and owned:
            await self._host.give_up(owned)
        self._was_lost = False
        self._needs_join = False
        topics = self._host.wanted_topics()
        joined = await self._join(topics)
        self._member_id = joined.member_id
        self._generation = joined.generation_id
        self._start_heartbeats()
        shares: list[SyncGroupRequestAssignment] = []
        protocol_name = joined.protocol_name or ""
        if joined.leader == joined.member_id:
            shares = await self._assign(joined, protocol_name)
        assigned = await self._sync(shares, protocol_name)
        self._counts = await self._host.partition_counts(topics)
        await self._apply(assigned)

    async def _join(self, topics: frozenset[str]) -> JoinGroupResponse:
        owned = self._host.owned() if self._is_cooperative else frozenset()
        number, rack, had = self._generation, self._rack, self._assigned
        names = self._settings.assignors
        protocols = [protocol(name, topics, owned, number, rack=rack, memory=had) for name in names]
        request = join_request(self._settings, self.place, protocols)
        response = await self._client.call(
            request,
            JoinGroupResponse,
            to=await self._coordinator.find(),
            timeout_s=self._settings.max_poll_interval_ms / 1000 + _GRACE_S,
            lane=JOIN_LANE,
        )
        self._check(response.error_code, response.member_id)
        return response

    def _check(self, number: int, member_id: str = "") -> None:
        """Raises what went wrong, after drawing the conclusions for this member's place."""
        code = error_code(number)
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = member_id
        elif code in _FORGOTTEN:
            self._was_lost = bool(self._host.owned())
            self._forget()
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            raise Fenced(self._instance_id or "", code)
        check_answer(number, f"group {self._settings.group_id!r}")

    async def _assign(
        self, joined: JoinGroupResponse, protocol_name: str
    ) -> list[SyncGroupRequestAssignment]:
        """The leader's part: who reads what."""
        assign = ASSIGNORS.get(protocol_name)
        if assign is None:
            raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"assignor {protocol_name!r}")
        if joined.skip_assignment:
            return []
        members = [
            member_from(row.member_id, row.group_instance_id, bytes(row.metadata), protocol_name)
            for row in joined.members
        ]
        topics = frozenset(topic for member in members for topic in member.topics)
        counts = await self._host.partition_counts(topics)
        assignment = assign(members, counts, self._host.partition_racks(topics))
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=assignment_bytes(partitions))
            for member, partitions in assignment.items()
        ]

    async def _sync(
        self, shares: list[SyncGroupRequestAssignment], protocol_name: str
    ) -> tuple[TopicPartition, ...]:
        request = sync_request(self.place, protocol_name, shares)
        response = await self._client.call(
            request,
            SyncGroupResponse,
            to=await self._coordinator.find(),
            timeout_s=self._settings.max_poll_interval_ms / 1000 + _GRACE_S,
            lane=JOIN_LANE,
        )
        self._check(response.error_code)
        return assignment_from(bytes(response.assignment))

    async def _apply(self, assigned: tuple[TopicPartition, ...]) -> None:
        self._assigned = assigned
        owned = self._host.owned()
        gone = owned - set(assigned)
        if gone:
            await self._host.give_up(gone)
            if self._is_cooperative:
                self._needs_join = True
        await self._host.take_over(assigned)
        _log.info(
            "group %s: generation %s reads %s",
            self._settings.group_id,
            self._generation,
            [str(each) for each in assigned],
        )

    # --- staying

    def _start_heartbeats(self) -> None:
        if self._heartbeats is None or self._heartbeats.done():
            self._heartbeats = asyncio.create_task(self._keep_alive())

    async def _keep_alive(self) -> None:
        settings = self._settings
        interval_s = settings.heartbeat_interval_ms / 1000
        while not self._is_closed and self._member_id:
            await asyncio.sleep(interval_s * (0.9 + 0.2 * random.random()))
            if self._host.since_poll_s() > settings.max_poll_interval_ms / 1000:
                _log.warning("group %s: no poll in time, leaving", settings.group_id)
                self._was_lost = True
                if self._instance_id is None:
                    await self._say_goodbye()
                self._forget()
                self._host.attend()
                return
            await self._heartbeat_once()

    async def _heartbeat_once(self) -> None:
        request = heartbeat_request(self.place)
        generation = self._generation
        try:
            response = await self._client.call(
                request,
                HeartbeatResponse,
                to=await self._coordinator.find(),
                timeout_s=self._settings.session_timeout_ms / 1000,
                lane=COORDINATOR_LANE,
            )
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                if self.is_settled:
                    self.resubscribed()
                return
            if generation == self._generation:
                self._check(response.error_code)
        except Fenced as error:
            self._host.fail(error)
        except OttlaError as error:
            if error.code in _FORGOTTEN:
                self._host.attend()
            elif is_worth_retrying(error):
                self._coordinator.forget()
            else:
                self._host.fail(error)

    async def _say_goodbye(self) -> None:
        request = leave_request(self.place)
        try:
            await self._client.call(
                request,
                LeaveGroupResponse,
                to=await self._coordinator.find(),
                timeout_s=_GRACE_S,
                lane=COORDINATOR_LANE,
            )
        except OttlaError as error:
            _log.info("group %s: left without a word: %s", self._settings.group_id, error)

    def partitions_changed(self, counts: dict[str, int]) -> None:
        """The topics are as large as this now: assign anew if that is news."""
        if self._counts and self.is_settled and counts != self._counts:
            self._counts = counts
            self.resubscribed()
