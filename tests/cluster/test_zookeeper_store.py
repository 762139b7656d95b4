"""The store on a real ZooKeeper: several sessions, lost connections and answers, ended sessions."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from support.zookeeper_proxy import ZooKeeperProxy

pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")

from kazoo.client import KazooClient

from ottla.cluster.certainty import has_happened, multi_for_certain
from ottla.cluster.session import SessionEvent
from ottla.cluster.store import (
    Create,
    MultiTooLarge,
    NodeChanged,
    SetData,
    StoreUncertain,
    StoreUnreachable,
)
from ottla.cluster.zookeeper import ZooKeeperStore
from ottla.testing.zookeeper import ZooKeeper, free_ports
from support.zookeeper_stores import CLOCK, a_store, events_of, is_alive, play, until


def test_the_chroot_is_made_and_ordinary_tools_read_what_is_in_it(address: str) -> None:
    place, _, _ = address.removeprefix("zookeeper://").partition("?")
    hosts, _, chroot = place.partition("/")

    async def scenario() -> None:
        async with a_store(address) as store:
            await store.multi([Create("/a", b"{}")])
            tool = KazooClient(hosts)
            await asyncio.to_thread(tool.start)
            data, stat = await asyncio.to_thread(tool.get, f"/{chroot}/a")
            await asyncio.to_thread(tool.stop)
            tool.close()
            assert (data, stat.version) == (b"{}", 0)

    play(scenario)


def test_without_a_chroot_zookeepers_own_nodes_are_not_ours(own_zookeeper: ZooKeeper) -> None:
    async def scenario() -> None:
        async with a_store(own_zookeeper.address) as store:
            await store.multi([Create("/a")])
            assert await store.children("/") == ["a"]
            assert list(await store.read_all("/")) == ["/", "/a"]

    play(scenario)


def test_ephemeral_nodes_end_with_their_session_and_others_hear_of_it(address: str) -> None:
    async def scenario() -> None:
        async with a_store(address) as one:
            heard: list[NodeChanged] = []
            one.watch("/b", heard.append)
            async with a_store(address) as other:
                await other.multi([Create("/b", is_ephemeral=True)])
                node = await one.get("/b")
                assert node is not None
                assert node.owner == other.session.id != one.session.id
            assert await one.get("/b") is None
            assert [change.kind.name for change in heard] == ["CREATED", "DELETED"]

    play(scenario)


@pytest.mark.parametrize("was_done", [True, False])
def test_a_multi_whose_connection_broke_is_uncertain_and_reading_tells(
    shared_zookeeper: ZooKeeper, was_done: bool
) -> None:
    async def scenario() -> None:
        with ZooKeeperProxy(shared_zookeeper.servers[0].port) as proxy:
            address = (
                f"zookeeper://{proxy.host_and_port}/{uuid.uuid4().hex}?session_timeout_ms=4000"
            )
            async with a_store(address) as store:
                session_id = store.session.id
                proxy.lose_next_multi(was_done=was_done)
                operations = [Create("/a", b"1", is_ephemeral=True)]
                with pytest.raises(StoreUncertain):
                    await store.multi(operations)
                assert await has_happened(store, operations) is was_done
                assert store.session.id == session_id

    play(scenario)


@pytest.mark.parametrize("was_done", [True, False])
def test_a_write_made_for_certain_happens_once_whatever_is_lost(
    shared_zookeeper: ZooKeeper, was_done: bool
) -> None:
    async def scenario() -> None:
        with ZooKeeperProxy(shared_zookeeper.servers[0].port) as proxy:
            address = (
                f"zookeeper://{proxy.host_and_port}/{uuid.uuid4().hex}?session_timeout_ms=4000"
            )
            async with a_store(address) as store:
                await store.multi([Create("/a")])
                proxy.lose_next_multi(was_done=was_done)
                done = await multi_for_certain(store, [SetData("/a", b"1", version=0)])
                node = await store.get("/a")
                assert proxy.was_lost.is_set()
                assert node is not None
                assert (node.data, node.version) == (b"1", 1)
                assert (done is None) is was_done

    play(scenario)


def test_a_restarted_server_finds_session_and_watchers_again(own_zookeeper: ZooKeeper) -> None:
    async def scenario() -> None:
        async with a_store(f"{own_zookeeper.address}/x?session_timeout_ms=20000") as store:
            await store.multi([Create("/stays", is_ephemeral=True)])
            events, session_id = events_of(store), store.session.id
            heard: list[NodeChanged] = []
            store.watch("/w", heard.append)
            await asyncio.to_thread(own_zookeeper.kill)
            await until(lambda: not store.is_connected, "the loss of the connection")
            await asyncio.to_thread(own_zookeeper.start)
            assert await store.get("/stays") is not None
            await until(lambda: bool(heard), "the hint to read again")
            await store.multi([Create("/w")])
            assert heard[-1].kind.name == "CREATED"
            assert store.session.id == session_id
            assert events == []
            assert is_alive(store)

    play(scenario)


def test_a_server_that_does_not_answer_the_greeting_is_tried_again_within_the_session(
    shared_zookeeper: ZooKeeper,
) -> None:
    async def scenario() -> None:
        with ZooKeeperProxy(shared_zookeeper.servers[0].port) as proxy:
            path = f"{uuid.uuid4().hex}?session_timeout_ms=12000"
            async with a_store(f"zookeeper://{proxy.host_and_port}/{path}") as store:
                await store.multi([Create("/stays", is_ephemeral=True)])
                events, session_id = events_of(store), store.session.id
                proxy.ignore_next_connection()
                proxy.cut()
                await until(lambda: not store.is_connected, "the loss of the connection")
                assert await store.get("/stays") is not None
                assert (store.session.id, events) == (session_id, [])

    play(scenario)


def test_a_broker_cut_off_doubts_its_session_before_zookeeper_ends_it(
    shared_zookeeper: ZooKeeper,
) -> None:
    async def scenario() -> None:
        with ZooKeeperProxy(shared_zookeeper.servers[0].port) as proxy:
            path = f"{uuid.uuid4().hex}?session_timeout_ms=4000"
            async with (
                a_store(f"zookeeper://{proxy.host_and_port}/{path}") as store,
                a_store(f"{shared_zookeeper.address}/{path}") as observer,
            ):
                await store.multi([Create("/broker", is_ephemeral=True)])
                events = events_of(store)
                was_alive_when_gone: list[bool] = []
                observer.watch("/broker", lambda _: was_alive_when_gone.append(is_alive(store)))
                proxy.stall()
                await until(lambda: bool(was_alive_when_gone), "the end of the session")
                assert was_alive_when_gone == [False]
                assert events == [SessionEvent.DOUBTED]
                with pytest.raises((StoreUnreachable, StoreUncertain)):
                    await store.multi([Create("/late")])
                proxy.flow()
                await until(lambda: is_alive(store), "a new session")
                assert events[1:] == [SessionEvent.EXPIRED, SessionEvent.RENEWED]
                assert await observer.get("/late") is None

    play(scenario)


def test_a_short_stall_puts_the_session_in_no_doubt(shared_zookeeper: ZooKeeper) -> None:
    async def scenario() -> None:
        with ZooKeeperProxy(shared_zookeeper.servers[0].port) as proxy:
            address = (
                f"zookeeper://{proxy.host_and_port}/{uuid.uuid4().hex}?session_timeout_ms=20000"
            )
            async with a_store(address) as store:
                events = events_of(store)
                proxy.cut()
                proxy.stall()
                await until(lambda: not store.is_connected, "the loss of the connection")
                reading = asyncio.ensure_future(store.get("/"))
                proxy.flow()
                assert await reading is not None
                assert events == []

    play(scenario)


def test_a_session_that_zookeeper_ended_is_renewed_without_its_nodes(address: str) -> None:
    async def scenario() -> None:
        async with a_store(address) as store:
            await store.multi([Create("/goes", is_ephemeral=True)])
            events, first = events_of(store), store.session.id
            await end_session(store)
            await until(lambda: SessionEvent.RENEWED in events, "a new session")
            assert events[-2:] == [SessionEvent.EXPIRED, SessionEvent.RENEWED]
            assert store.session.id != first
            assert store.session.was_own(first)
            assert await store.get("/goes") is None
            await store.multi([Create("/goes", is_ephemeral=True)])

    play(scenario)


async def end_session(store: ZooKeeperStore) -> None:
    """Take the session up from elsewhere and close it there, as ZooKeeper's expiry would."""
    client_id = store._client._kazoo.client_id
    thief = KazooClient(",".join(store.address.hosts), client_id=client_id)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    thief.close()


def test_more_than_a_packet_is_refused_and_the_connection_stays(address: str) -> None:
    async def scenario() -> None:
        async with a_store(address) as store:
            with pytest.raises(MultiTooLarge) as raised:
                await store.multi([Create(f"/{n}", bytes(100_000)) for n in range(11)])
            assert raised.value.size_bytes > 1_100_000
            operations = [Create(f"/{n}", bytes(99_000)) for n in range(10)]
            assert sum(map(store.size_bytes, operations)) < store.multi_bytes_max
            assert len(await store.multi(operations)) == 10

    play(scenario)


def test_an_address_where_nothing_answers_is_a_sentence() -> None:
    async def scenario() -> None:
        address = f"zookeeper://127.0.0.1:{free_ports(1)[0]}"
        with pytest.raises(StoreUnreachable, match="check the address"):
            await ZooKeeperStore.open(address, CLOCK, seconds_max=0.5)

    play(scenario)
