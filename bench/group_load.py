"""Groups on the wire: many members, each with a connection of its own as real consumers have.

Knows the classic protocol only: JoinGroup 5, SyncGroup 3, Heartbeat 3, LeaveGroup 1, OffsetCommit 6
and FindCoordinator 1. Members subscribe to nothing and are assigned nothing.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from functools import partial

import wire

SESSION_TIMEOUT_MS = 120_000
REBALANCE_TIMEOUT_MS = 60_000
RETRY_SECONDS = 0.2
ANSWER_SECONDS_MAX = 90.0
SETTLE_TURNS_MAX = 300
CONNECTING_MAX = 50
COMMITTING_MAX = 64
MEMBER_ID_REQUIRED = 79
NOT_YET = {14, 15, 16}  # the coordinator is loading, or not known yet
JOIN_AGAIN = {22, 27}  # the generation is over, or is being replaced
SUBSCRIPTION = struct.pack(">hii", 0, 0, -1)
ASSIGNMENT = struct.pack(">hii", 0, 0, -1)
"""Version 0 of what consumers tell each other, naming no topic. Brokers may read it."""


class Member(asyncio.Protocol):
    """One member and its connection; one request is in flight at a time."""

    def __init__(self, group: Group, number: int) -> None:
        self._group = group
        self.number = number
        self.member_id = ""
        self.generation = -1
        self._is_leader = False
        self._roster: list[str] = []
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answer: asyncio.Future[wire.Reader] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or wire.BrokerAnswer("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < 4:
            return
        (size,) = struct.unpack_from(">i", self._received)
        if len(self._received) < 4 + size:
            return
        frame = bytes(self._received[8:])
        self._received.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(wire.Reader(frame))

    async def request(self, api: int, body: bytes) -> wire.Reader:
        """One round trip."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(wire.frame(api, 0, body))
        return await asyncio.wait_for(self._answer, ANSWER_SECONDS_MAX)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def settle(self) -> None:
        """Join, and join again as often as needed, until the whole group is of one generation."""
        for _ in range(SETTLE_TURNS_MAX):
            if self.generation < 0 and not await self._join_and_sync():
                continue
            if self._group.is_settled:
                return
            await asyncio.sleep(RETRY_SECONDS)
            if not self._group.is_settled and await self.heartbeat() in JOIN_AGAIN:
                self.generation = -1
        raise wire.BrokerAnswer(f"{self._group.name} does not settle")

    async def _join_and_sync(self) -> bool:
        """Whether an assignment was got; False where the group moved on meanwhile."""
        error, generation = await self._join()
        if error == MEMBER_ID_REQUIRED:
            error, generation = await self._join()
        if error in NOT_YET:
            await asyncio.sleep(RETRY_SECONDS)
            return False
        _raise_for("JoinGroup", error)
        error = await self._sync(generation)
        if error in JOIN_AGAIN:
            return False
        _raise_for("SyncGroup", error)
        self.generation = generation
        self._group.look_whether_settled()
        return True

    async def _join(self) -> tuple[int, int]:
        body = wire.string(self._group.name)
        body += struct.pack(">ii", SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS)
        body += wire.string(self.member_id) + wire.string(None) + wire.string("consumer")
        body += struct.pack(">i", 1) + wire.string("range") + _block(SUBSCRIPTION)
        answer = await self.request(wire.JOIN_GROUP, body)
        _, error, generation = answer.take("ihi")
        answer.string()
        leader, self.member_id = answer.string(), answer.string() or ""
        self._is_leader = leader == self.member_id
        self._roster = []
        for _ in range(answer.number("i")):
            self._roster.append(answer.string() or "")
            answer.string()
            answer.skip(answer.number("i"))
        return int(error), int(generation)

    async def _sync(self, generation: int) -> int:
        body = wire.string(self._group.name) + struct.pack(">i", generation)
        body += wire.string(self.member_id) + wire.string(None)
        body += struct.pack(">i", len(self._roster))
        body += b"".join(wire.string(one) + _block(ASSIGNMENT) for one in self._roster)
        answer = await self.request(wire.SYNC_GROUP, body)
        _, error = answer.take("ih")
        if not error and answer.number("i") != len(ASSIGNMENT):
            raise wire.BrokerAnswer("SyncGroup answered another assignment")
        return int(error)

    async def heartbeat(self) -> int:
        body = wire.string(self._group.name) + struct.pack(">i", self.generation)
        body += wire.string(self.member_id) + wire.string(None)
        _, error = (await self.request(wire.HEARTBEAT, body)).take("ih")
        if error not in JOIN_AGAIN:
            _raise_for("Heartbeat", int(error))
        return int(error)

    async def leave(self) -> None:
        body = wire.string(self._group.name) + wire.string(self.member_id)
        _, error = (await self.request(wire.LEAVE_GROUP, body)).take("ih")
        _raise_for("LeaveGroup", int(error))

    async def commit(self, topic: str, partition: int, position: int) -> None:
        body = wire.string(self._group.name) + struct.pack(">i", self.generation)
        body += wire.string(self.member_id) + struct.pack(">i", 1) + wire.string(topic)
        body += struct.pack(">iiqi", 1, partition, position, -1) + wire.string("")
        answer = await self.request(wire.OFFSET_COMMIT, body)
        answer.take("ii")
        answer.string()
        _, _, error = answer.take("iih")
        _raise_for("OffsetCommit", int(error))


def _block(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _raise_for(api: str, error: int) -> None:
    if error:
        raise wire.BrokerAnswer(f"{api} answered error {error}")


@dataclass(slots=True)
class Group:
    """The members of one group and when they last were all of one generation."""

    name: str
    members: list[Member] = field(default_factory=list)
    began_s: float = 0.0
    settled_s: float = 0.0

    @property
    def is_settled(self) -> bool:
        return self.settled_s > 0

    def look_whether_settled(self) -> None:
        """Called when a member got its assignment: the last one of a generation settles it."""
        if len({member.generation for member in self.members}) == 1:
            self.settled_s = time.perf_counter()

    async def settle(self) -> float:
        """The seconds until every member had its assignment in one generation."""
        self.began_s, self.settled_s = time.perf_counter(), 0.0
        await asyncio.gather(*(member.settle() for member in self.members))
        return self.settled_s - self.began_s

    async def rebalance(self) -> float:
        """One member leaves, the others learn it from a heartbeat; seconds until they settled."""
        began_s = time.perf_counter()
        await self.members.pop().leave()
        errors = await asyncio.gather(*(member.heartbeat() for member in self.members))
        if set(errors) != {27}:
            raise wire.BrokerAnswer(f"heartbeats after a departure answered {set(errors)}")
        for member in self.members:
            member.generation = -1
        await self.settle()
        return self.settled_s - began_s


class Swarm:
    """All groups under load."""

    def __init__(self, bootstrap: str, group_count: int, member_count: int) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._address = host, int(port)
        self._connections: list[Member] = []
        run = time.time_ns()
        self.groups = [Group(f"bench-{run}-{number}") for number in range(group_count)]
        for group in self.groups:
            group.members = [Member(group, number) for number in range(member_count)]
            self._connections += group.members

    @property
    def members(self) -> list[Member]:
        return [member for group in self.groups for member in group.members]

    async def connect(self) -> None:
        """Open all connections and find all coordinators."""
        waiting, loop = iter(self._connections), asyncio.get_running_loop()

        async def connect_some() -> None:
            for member in waiting:
                await loop.create_connection(partial(_itself, member), *self._address)

        await _all_of(connect_some() for _ in range(CONNECTING_MAX))
        await _all_of(self._find(group) for group in self.groups)

    async def _find(self, group: Group) -> None:
        body = wire.string(group.name) + b"\0"
        for _ in range(SETTLE_TURNS_MAX):
            answer = await group.members[0].request(wire.FIND_COORDINATOR, body)
            _, error = answer.take("ih")
            if error not in NOT_YET:
                return _raise_for("FindCoordinator", int(error))
            await asyncio.sleep(RETRY_SECONDS)
        raise wire.BrokerAnswer("no coordinator was found")

    async def form(self) -> list[float]:
        """Every member joins at once; the seconds each group took."""
        return await _all_of(group.settle() for group in self.groups)

    async def rebalance(self) -> list[float]:
        """One member of every group leaves; the seconds each group took to settle."""
        return await _all_of(group.rebalance() for group in self.groups)

    async def heartbeat(self, seconds: float, interval_s: float) -> list[float]:
        """Every member sends a heartbeat each interval; the seconds until each was answered."""
        members = self.members
        end_s = time.perf_counter() + seconds
        answered: list[float] = []

        async def beat(member: Member, first_s: float) -> None:
            due_s = first_s
            while due_s < end_s:
                await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
                if await member.heartbeat():
                    raise wire.BrokerAnswer("a settled group is being rebalanced")
                answered.append(time.perf_counter() - due_s)
                due_s += interval_s

        start_s, step_s = time.perf_counter(), interval_s / len(members)
        await _all_of(
            beat(member, start_s + number * step_s) for number, member in enumerate(members)
        )
        return answered

    async def commit(self, topic: str, seconds: float) -> list[float]:
        """Members commit in turns, some at a time; the seconds until each was answered."""
        members = self.members
        end_s = time.perf_counter() + seconds
        answered: list[float] = []

        async def commit_for(share: list[Member]) -> None:
            position = 0
            while True:
                position += 1
                for member in share:
                    begun_s = time.perf_counter()
                    if begun_s > end_s:
                        return
                    await member.commit(topic, member.number, position)
                    answered.append(time.perf_counter() - begun_s)

        shares = [members[start::COMMITTING_MAX] for start in range(COMMITTING_MAX)]
        await _all_of(commit_for(share) for share in shares if share)
        return answered

    async def end(self) -> None:
        """All leave, and the connections are closed."""
        await _all_of(member.leave() for member in self.members)
        self.close()

    def close(self) -> None:
        for member in self._connections:
            member.close()


def _itself(member: Member) -> Member:
    return member


async def _all_of(work: Iterable[Awaitable[float | None]]) -> list[float]:
    return [found for found in await asyncio.gather(*work) if found is not None]
