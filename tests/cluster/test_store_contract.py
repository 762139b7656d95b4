"""The rules of the metadata store, on the file of a single node and on a real ZooKeeper alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.broker.system_clock import SystemClock
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.store import (
    BadVersion,
    ChangeKind,
    Check,
    Create,
    Delete,
    MetadataStore,
    NoChildrenAllowed,
    NodeChanged,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SetData,
    StoreConflict,
    StoreFailed,
)
from support.tree_model import OPERATIONS, ModelTree

Scenario = Callable[[MetadataStore], Awaitable[None]]
Run = Callable[[Scenario], None]


@pytest.fixture(params=["memory", "file", "zookeeper"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a scenario on an empty store of each kind."""
    address = request.getfixturevalue("address") if request.param == "zookeeper" else ""

    async def open_store() -> MetadataStore:
        if request.param == "memory":
            return await EmbeddedStore.open(None)
        if request.param == "file":
            return await EmbeddedStore.open(tmp_path / "metadata")
        from ottla.cluster.zookeeper import ZooKeeperStore

        return await ZooKeeperStore.open(address, SystemClock())

    async def play(scenario: Scenario) -> None:
        store = await open_store()
        try:
            async with asyncio.timeout(60):
                await scenario(store)
        finally:
            await store.close()

    return lambda scenario: asyncio.run(play(scenario))


async def contents(store: MetadataStore) -> dict[str, tuple[bytes, int]]:
    return {path: (node.data, node.version) for path, node in (await store.read_all("/")).items()}


def test_a_node_begins_at_version_zero_and_counts_its_changes(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        (made,) = await store.multi([Create("/a", b"one")])
        created = await store.get("/a")
        assert created is not None
        assert (created.data, created.version, created.owner) == (b"one", 0, 0)
        assert made.czxid == created.czxid
        (done,) = await store.multi([SetData("/a", b"two", version=0)])
        changed = await store.get("/a")
        assert changed is not None
        assert (changed.data, changed.version, changed.czxid) == (b"two", 1, created.czxid)
        assert changed.mzxid > changed.czxid
        assert (done.version, done.czxid) == (1, created.czxid)

    run(scenario)


def test_all_nodes_of_a_multi_share_its_zxid_and_later_ones_are_larger(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        first, second = await store.multi([Create("/a"), Create("/b")])
        (third,) = await store.multi([Create("/c")])
        assert first.czxid == second.czxid < third.czxid

    run(scenario)


@pytest.mark.parametrize(
    ("operations", "failure", "path"),
    [
        ([Create("/a")], NodeExists, "/a"),
        ([Create("/")], NodeExists, "/"),
        ([Create("/x/y")], NoNode, "/x"),
        ([Create("/gone/child")], NoChildrenAllowed, "/gone"),
        ([SetData("/a", b"", version=1)], BadVersion, "/a"),
        ([SetData("/x", b"")], NoNode, "/x"),
        ([Delete("/a")], NotEmpty, "/a"),
        ([Delete("/")], NotEmpty, "/"),
        ([Delete("/a/b", version=3)], BadVersion, "/a/b"),
        ([Delete("/x")], NoNode, "/x"),
        ([Check("/a", 1)], BadVersion, "/a"),
        ([Check("/x", 0)], NoNode, "/x"),
    ],
)
def test_a_multi_that_fails_leaves_everything_as_it_was(
    run: Run, operations: list[Operation], failure: type[StoreConflict], path: str
) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.multi([Create("/a"), Create("/a/b"), Create("/gone", is_ephemeral=True)])
        before = await store.read_all("/")
        with pytest.raises(failure) as raised:
            await store.multi([Create("/new"), SetData("/a/b", b"changed"), *operations])
        assert raised.value.path == path
        assert await store.read_all("/") == before

    run(scenario)


def test_later_operations_of_a_multi_see_the_earlier_ones(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        done = await store.multi(
            [Create("/a"), SetData("/a", b"x", version=0), Check("/a", 1), Delete("/a", version=1)]
        )
        assert [(each.path, each.version) for each in done] == [
            ("/a", 0),
            ("/a", 1),
            ("/a", 1),
            ("/a", 1),
        ]
        assert await store.get("/a") is None
        assert await store.multi([]) == []

    run(scenario)


def test_sequential_nodes_count_up_even_after_a_deletion(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.multi([Create("/q")])
        paths = []
        for _ in range(3):
            (done,) = await store.multi([Create("/q/n_", is_sequential=True)])
            paths.append(done.path)
            await store.multi([Delete(done.path)])
        assert paths == sorted(set(paths))
        assert paths[0] == "/q/n_0000000000"

    run(scenario)


def test_children_are_names_in_order_and_read_all_takes_the_whole_branch(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        paths = ("/a", "/a/c", "/a/b", "/a/b/d", "/ab", "/a0", "/a-")
        await store.multi([Create(path) for path in paths])
        assert await store.children("/a") == ["b", "c"]
        assert await store.children("/a/c") == []
        assert list(await store.read_all("/a")) == ["/a", "/a/b", "/a/b/d", "/a/c"]
        assert len(await store.read_all("/")) == 8
        assert await store.read_all("/x") == {}
        with pytest.raises(NoNode):
            await store.children("/x")

    run(scenario)


def test_thousands_of_nodes_are_read_whole(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.multi([Create("/a"), Create("/b")])
        for half in ("/a", "/b"):
            await store.multi([Create(f"{half}/{n}", str(n).encode()) for n in range(1_500)])
        found = await store.read_all("/")
        assert len(found) == 3_003
        assert found["/b/1499"].data == b"1499"

    run(scenario)


def test_an_ephemeral_node_belongs_to_the_session(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.multi([Create("/goes", is_ephemeral=True)])
        node = await store.get("/goes")
        assert node is not None
        assert node.owner == store.session.id != 0
        assert (await store.read_all("/goes"))["/goes"] == node
        assert store.session.is_alive(SystemClock().monotonic_ms())

    run(scenario)


def test_watchers_hear_of_their_branch_before_multi_returns(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        heard: list[NodeChanged] = []
        watch = store.watch("/a", heard.append)
        await store.multi([Create("/a"), Create("/ab"), Create("/a/b")])
        assert len(heard) == 2
        with pytest.raises(NodeExists):
            await store.multi([SetData("/a", b"x"), Create("/a")])
        await store.multi([SetData("/a/b", b"x")])
        watch.cancel()
        watch.cancel()
        await store.multi([Delete("/a/b")])
        assert heard == [
            NodeChanged("/a", ChangeKind.CREATED),
            NodeChanged("/a/b", ChangeKind.CREATED),
            NodeChanged("/a/b", ChangeKind.CHANGED),
        ]

    run(scenario)


def test_a_cancelled_caller_does_not_keep_a_commit_from_the_watchers(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        heard: list[NodeChanged] = []
        store.watch("/", heard.append)
        task = asyncio.ensure_future(store.multi([Create("/a")]))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        is_there = await store.get("/a") is not None
        assert heard == ([NodeChanged("/a", ChangeKind.CREATED)] if is_there else [])

    run(scenario)


def test_a_failing_watcher_fails_neither_the_commit_nor_the_others(run: Run) -> None:
    def fails(change: NodeChanged) -> None:
        raise RuntimeError(change.path)

    async def scenario(store: MetadataStore) -> None:
        heard: list[NodeChanged] = []
        problems: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context["message"]))
        store.watch("/", fails)
        store.watch("/", heard.append)
        await store.multi([Create("/a")])
        assert len(heard) == len(problems) == 1

    run(scenario)


def test_a_closed_store_says_so(run: Run) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.close()
        await store.close()
        with pytest.raises(StoreFailed, match="closed"):
            await store.get("/")
        with pytest.raises(StoreFailed, match="closed"):
            await store.multi([Create("/a")])

    run(scenario)


def outcome(error: BaseException | None) -> tuple[type[BaseException], str] | None:
    return (type(error), error.path) if isinstance(error, StoreConflict) else None


async def attempt(call: Awaitable[Any]) -> BaseException | None:
    try:
        await call
    except StoreConflict as conflict:
        return conflict
    return None


async def model_attempt(model: ModelTree, operations: list[Operation]) -> None:
    model.multi(operations)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # kazoo's thread does
def test_the_tree_behaves_as_its_model(run: Run) -> None:
    async def compare(store: MetadataStore, multis: list[list[Operation]]) -> None:
        before = [path for path in await store.read_all("/") if path != "/"]
        await store.multi([Delete(path) for path in reversed(before)])
        model = ModelTree()
        for operations in multis:
            expected = await attempt(model_attempt(model, operations))
            found = await attempt(store.multi(operations))
            assert outcome(found) == outcome(expected)
            assert await contents(store) == model.nodes

    async def scenario(store: MetadataStore) -> None:
        loop = asyncio.get_running_loop()

        # One store serves all examples; each begins by emptying it.
        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(st.lists(OPERATIONS, max_size=4), max_size=8))
        def examples(multis: list[list[Operation]]) -> None:
            asyncio.run_coroutine_threadsafe(compare(store, multis), loop).result(60)

        await asyncio.to_thread(examples)

    run(scenario)
