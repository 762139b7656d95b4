"""A broker among others: known, fenced when in doubt, controller where nobody else is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.broker.membership import Membership
from ottla.broker.standing import Standing
from ottla.cluster import layout
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.registration import BrokerIdInUse, ControllerMoved
from ottla.cluster.store import Delete
from ottla.model.ids import BrokerId
from support.eventually import eventually_async
from support.lossy_store import LossyStore

ME, OTHER = BrokerId(1), BrokerId(2)
TIMEOUT_MS = 1_000


class Now:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Member:
    """A broker with a session of its own on a tree it shares."""

    def __init__(self, store: LossyStore, metadata: ClusterMetadata, broker_id: BrokerId) -> None:
        self.store = store
        self.session = store.session
        self.metadata = metadata
        self.clock = Now()
        self.stood = 0
        self.begun = 0
        self.standing = Standing(broker_id, self.clock, 10_000, store.session)
        self.standing.is_registered = False
        node = layout.BrokerNode(
            host="h",
            port=broker_id,
            endpoints=(f"PLAINTEXT://h:{broker_id}",),
            timestamp="0",
            listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
        )
        self.membership = Membership(
            metadata, self.standing, node, stood=self._stood, begin=self._begin
        )

    def _stood(self) -> None:
        self.stood += 1

    def _begin(self, _draft: object) -> None:
        self.begun += 1

    async def loses_its_session(self, new_id: int) -> None:
        """The store ends the session with its nodes, and gives a new one."""
        ended = self.session.id
        for path, owner in tuple(self.store.owners.items()):
            if owner == ended and await self.store.get(path) is not None:
                await self.store.multi([Delete(path)])
                del self.store.owners[path]
        self.session.begin(new_id, TIMEOUT_MS, self.clock.ms)


Play = Callable[[Member, Member], Awaitable[None]]


def play(scenario: Play) -> None:
    async def run() -> None:
        tree = await EmbeddedStore.open(None)
        first = LossyStore(tree, 11)
        members = []
        for store, broker_id in ((first, ME), (first.another_session(22), OTHER)):
            metadata = await ClusterMetadata.open(store, cluster_id="c")
            metadata.follow()
            members.append(Member(store, metadata, broker_id))
        try:
            async with asyncio.timeout(20):
                await scenario(*members)
        finally:
            for member in members:
                await member.membership.leave()
                await member.metadata.stop_following()

    asyncio.run(run())


def test_the_first_member_becomes_controller_and_begins_once() -> None:
    async def scenario(me: Member, other: Member) -> None:
        await me.membership.join()
        await eventually_async(lambda: me.begun == 1)
        assert me.metadata.is_controller
        assert not me.standing.is_fenced
        await other.membership.join()
        await eventually_async(lambda: set(me.metadata.image.brokers) == {ME, OTHER})
        assert not other.metadata.is_controller
        assert other.metadata.image.controller_id == ME

    play(scenario)


def test_another_takes_over_when_the_controller_leaves() -> None:
    async def scenario(me: Member, other: Member) -> None:
        await me.membership.join()
        await eventually_async(lambda: me.metadata.is_controller)
        await other.membership.join()
        await me.membership.leave()
        await eventually_async(lambda: other.begun == 1)
        assert other.metadata.is_controller
        assert not me.metadata.is_controller

    play(scenario)


def test_past_its_deadline_a_broker_leads_nothing_though_nobody_told_it() -> None:
    async def scenario(me: Member, _other: Member) -> None:
        await me.membership.join()
        assert me.standing.is_certain
        me.clock.ms = TIMEOUT_MS
        assert not me.standing.is_certain

    play(scenario)


def test_a_controller_in_doubt_decides_nothing_and_decides_again_when_confirmed() -> None:
    async def scenario(me: Member, other: Member) -> None:
        await me.membership.join()
        await eventually_async(lambda: me.begun == 1)
        epoch = me.metadata.image.controller_epoch
        stood = me.stood
        me.clock.ms = TIMEOUT_MS
        me.session.doubt(me.clock.ms)
        assert not me.metadata.is_controller
        assert me.stood > stood
        with pytest.raises(ControllerMoved):
            await me.metadata.change(lambda draft: None)
        me.clock.ms += 1
        me.session.confirm(me.clock.ms)
        await eventually_async(lambda: me.begun == 2)
        assert me.metadata.image.controller_epoch == epoch + 1

    play(scenario)


def test_a_new_session_is_registered_again_with_a_larger_epoch() -> None:
    async def scenario(me: Member, other: Member) -> None:
        await me.membership.join()
        await other.membership.join()
        await eventually_async(lambda: ME in other.metadata.image.brokers)
        before = other.metadata.image.brokers[ME].epoch
        await me.loses_its_session(33)
        await eventually_async(lambda: _epoch_of_me(other) > before)
        await eventually_async(lambda: me.standing.is_certain)
        assert sum(each.metadata.is_controller for each in (me, other)) == 1

    play(scenario)


def _epoch_of_me(seen_by: Member) -> int:
    registered = seen_by.metadata.image.brokers.get(ME)
    return registered.epoch if registered is not None else -1


def test_an_id_somebody_else_has_is_refused() -> None:
    async def scenario(me: Member, other: Member) -> None:
        await me.membership.join()
        other.standing.broker_id = ME
        with pytest.raises(BrokerIdInUse):
            await other.membership.join()
        assert other.standing.is_fenced

    play(scenario)
