"""The store of a single node: ZooKeeper's rules, durable in a file, refused when damaged."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.sqlite_tree import SqliteTree
from ottla.cluster.store import (
    BadVersion,
    ChangeKind,
    Check,
    Create,
    Delete,
    MetadataDamaged,
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
from ottla.errors import ErrorCode
from support.tree_model import OPERATIONS, ModelTree

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def contents(tree: SqliteTree) -> dict[str, tuple[bytes, int]]:
    return {path: (node.data, node.version) for path, node in tree.read_all("/").items()}


def test_a_node_begins_at_version_zero_and_counts_its_changes() -> None:
    tree = SqliteTree(None)
    tree.multi([Create("/a", b"one")])
    created = tree.get("/a")
    assert created is not None
    assert (created.data, created.version) == (b"one", 0)
    tree.multi([SetData("/a", b"two", version=0)])
    changed = tree.get("/a")
    assert changed is not None
    assert (changed.data, changed.version, changed.czxid) == (b"two", 1, created.czxid)
    assert changed.mzxid > changed.czxid
    tree.close()


@pytest.mark.parametrize(
    ("operations", "failure"),
    [
        ([Create("/a")], NodeExists),
        ([Create("/")], NodeExists),
        ([Create("/x/y")], NoNode),
        ([Create("/gone/child")], NoChildrenAllowed),
        ([SetData("/a", b"", version=1)], BadVersion),
        ([SetData("/x", b"")], NoNode),
        ([Delete("/a")], NotEmpty),
        ([Delete("/")], NotEmpty),
        ([Delete("/a/b", version=3)], BadVersion),
        ([Delete("/x")], NoNode),
        ([Check("/a", 1)], BadVersion),
        ([Check("/x", 0)], NoNode),
    ],
)
def test_a_multi_that_fails_leaves_everything_as_it_was(
    operations: list[Operation], failure: type[StoreConflict]
) -> None:
    tree = SqliteTree(None)
    tree.multi([Create("/a"), Create("/a/b"), Create("/gone", is_ephemeral=True)])
    before = tree.read_all("/")
    with pytest.raises(failure):
        tree.multi([Create("/new"), SetData("/a/b", b"changed"), *operations])
    assert tree.read_all("/") == before
    tree.close()


def test_later_operations_of_a_multi_see_the_earlier_ones() -> None:
    tree = SqliteTree(None)
    done, changes = tree.multi(
        [Create("/a"), SetData("/a", b"x", version=0), Check("/a", 1), Delete("/a", version=1)]
    )
    assert [each.version for each in done] == [0, 1, 1, 1]
    assert [each.kind for each in changes] == [
        ChangeKind.CREATED,
        ChangeKind.CHANGED,
        ChangeKind.DELETED,
    ]
    assert tree.get("/a") is None
    tree.close()


def test_sequential_nodes_count_up_even_after_a_deletion(tmp_path: Path) -> None:
    tree = SqliteTree(tmp_path / "metadata")
    tree.multi([Create("/q")])
    first = tree.multi([Create("/q/n_", is_sequential=True)])[0][0].path
    assert first == "/q/n_0000000000"
    tree.multi([Delete(first)])
    tree.close()
    tree = SqliteTree(tmp_path / "metadata")
    assert tree.multi([Create("/q/n_", is_sequential=True)])[0][0].path == "/q/n_0000000001"
    tree.close()


def test_children_are_names_in_order_and_read_all_takes_the_whole_branch() -> None:
    tree = SqliteTree(None)
    tree.multi([Create(path) for path in ("/a", "/a/c", "/a/b", "/a/b/d", "/ab", "/a0", "/a-")])
    assert tree.children("/a") == ["b", "c"]
    assert list(tree.read_all("/a")) == ["/a", "/a/b", "/a/b/d", "/a/c"]
    assert len(tree.read_all("/")) == 8
    assert tree.read_all("/x") == {}
    with pytest.raises(NoNode):
        tree.children("/x")
    tree.close()


def test_ephemeral_nodes_end_with_the_session(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    tree = SqliteTree(path)
    tree.multi([Create("/stays"), Create("/goes", is_ephemeral=True)])
    assert tree.close() == [NodeChanged("/goes", ChangeKind.DELETED)]
    tree = SqliteTree(path)
    assert tree.get("/stays") is not None
    assert tree.get("/goes") is None
    tree.close()


def test_ephemeral_nodes_of_a_killed_session_are_gone_and_epochs_still_grow(tmp_path: Path) -> None:
    tree = SqliteTree(tmp_path / "metadata")
    tree.multi([Create("/broker", is_ephemeral=True)])
    first = tree.get("/broker")
    crashed = crash(tmp_path, tmp_path / "crashed")
    tree.close()
    tree = SqliteTree(crashed)
    assert tree.get("/broker") is None
    tree.multi([Create("/broker", is_ephemeral=True)])
    second = tree.get("/broker")
    assert first is not None
    assert second is not None
    assert second.czxid > first.czxid
    tree.close()


def crash(source: Path, target: Path, log_bytes: int | None = None) -> Path:
    """The files as a killed process leaves them, the write-ahead log cut to `log_bytes`."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file in source.iterdir():
        if file.is_file():
            shutil.copy(file, target / file.name)
    if log_bytes is not None:
        with (target / "metadata-wal").open("r+b") as log:
            log.truncate(log_bytes)
    return target / "metadata"


def test_a_write_torn_at_any_byte_is_wholly_there_or_not_at_all(tmp_path: Path) -> None:
    tree = SqliteTree(tmp_path / "metadata")
    log = tmp_path / "metadata-wal"
    states = [contents(tree)]
    sizes = [log.stat().st_size]
    for number in range(6):
        tree.multi(
            [Create(f"/t{number}", b"x" * 3000), *(Create(f"/t{number}/{n}") for n in range(40))]
        )
        states.append(contents(tree))
        sizes.append(log.stat().st_size)
    for cut in range(sizes[0], sizes[-1] + 1, 509):
        committed = max(n for n, size in enumerate(sizes) if size <= cut)
        crashed = crash(tmp_path, tmp_path / "crashed", cut)
        (tmp_path / "crashed" / "metadata-mark").write_text(f"{committed:020d}\n")
        reopened = SqliteTree(crashed)
        found = contents(reopened)
        reopened.close()
        assert found == states[committed], f"cut at {cut}"
    tree.close()


def test_a_log_that_lacks_commits_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    tree = SqliteTree(tmp_path / "metadata")
    log = tmp_path / "metadata-wal"
    for number in range(3):
        tree.multi([Create(f"/t{number}", b"x" * 3000)])
    whole = log.stat().st_size
    for cut in range(0, whole, 1009):
        with pytest.raises(MetadataDamaged, match="ottla log adopt"):
            SqliteTree(crash(tmp_path, tmp_path / "crashed", cut))
    SqliteTree(crash(tmp_path, tmp_path / "crashed", whole)).close()
    tree.close()


def test_a_node_that_was_changed_behind_our_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    tree = SqliteTree(path)
    tree.multi([Create("/topic", b"retention.ms=604800000")])
    tree.close()
    whole = path.read_bytes()
    assert whole.count(b"retention.ms=604800000") == 1
    path.write_bytes(whole.replace(b"retention.ms=604800000", b"retention.ms=004800000"))
    with pytest.raises(MetadataDamaged, match="checksum of /topic"):
        SqliteTree(path)


def test_a_file_of_the_format_without_checksums_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    tree = SqliteTree(path)
    tree.multi([Create("/a", b"x")])
    tree.close()
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE nodes DROP COLUMN checksum")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    (tmp_path / "metadata-mark").unlink()
    tree = SqliteTree(path)
    tree.multi([SetData("/a", b"y", 0)])
    tree.close()
    tree = SqliteTree(path)
    assert tree.get("/a") is not None
    tree.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    tree = SqliteTree(tmp_path / "metadata")
    with pytest.raises(StoreFailed, match="in use"):
        SqliteTree(tmp_path / "metadata")
    tree.close()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    SqliteTree(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreFailed, match="newer version"):
        SqliteTree(path)


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StoreFailed, match="another program"):
        SqliteTree(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    connection.close()


@pytest.mark.parametrize("damage", ["text", "overwritten", "cut"])
def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "metadata"
    tree = SqliteTree(path)
    tree.multi([Create(f"/{number}", b"x" * 500) for number in range(200)])
    tree.close()
    content = path.read_bytes()
    damaged = {
        "text": b"this is not a database, however long it is" * 100,
        "overwritten": content[:8192] + b"\xff" * 16384 + content[24576:],
        "cut": content[: len(content) // 2],
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(StoreFailed, match=r"damaged.*restore"):
        SqliteTree(path)


def test_a_full_disk_fails_the_multi_and_nothing_else(tmp_path: Path) -> None:
    tree = SqliteTree(tmp_path / "metadata")
    tree.multi([Create("/a", b"before")])
    before = tree.read_all("/")
    limit = tree._connection.execute("PRAGMA max_page_count").fetchone()[0]
    tree._connection.execute("PRAGMA max_page_count = 1")  # SQLite's own full disk
    with pytest.raises(StoreFailed, match="full") as failure:
        tree.multi([Create("/b"), SetData("/a", b"x" * 100_000)])
    assert failure.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert tree.read_all("/") == before
    tree._connection.execute(f"PRAGMA max_page_count = {limit}")
    tree.multi([Create("/b")])
    assert tree.get("/b") is not None
    tree.close()


def test_a_directory_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be used"):
        SqliteTree(tmp_path / "absent" / "metadata")


def test_watchers_hear_of_their_branch_before_multi_returns(tmp_path: Path) -> None:
    async def scenario(path: Path | None) -> list[NodeChanged]:
        heard: list[NodeChanged] = []
        store = await EmbeddedStore.open(path)
        watch = store.watch("/a", heard.append)
        await store.multi([Create("/a"), Create("/ab"), Create("/a/b")])
        assert len(heard) == 2
        with pytest.raises(NodeExists):
            await store.multi([SetData("/a", b"x"), Create("/a")])
        await store.multi([SetData("/a/b", b"x")])
        watch.cancel()
        watch.cancel()
        await store.multi([Delete("/a/b")])
        await store.close()
        return heard

    expected = [
        NodeChanged("/a", ChangeKind.CREATED),
        NodeChanged("/a/b", ChangeKind.CREATED),
        NodeChanged("/a/b", ChangeKind.CHANGED),
    ]
    assert run(scenario(None)) == expected
    assert run(scenario(tmp_path / "metadata")) == expected


def test_a_cancelled_caller_does_not_keep_a_commit_from_the_watchers(tmp_path: Path) -> None:
    async def scenario() -> tuple[bool, list[NodeChanged]]:
        heard: list[NodeChanged] = []
        store = await EmbeddedStore.open(tmp_path / "metadata")
        store.watch("/", heard.append)
        task = asyncio.ensure_future(store.multi([Create("/a")]))
        await asyncio.sleep(0)
        task.cancel()
        is_there = await store.get("/a") is not None
        await store.close()
        return is_there, heard

    is_there, heard = run(scenario())
    assert heard == ([NodeChanged("/a", ChangeKind.CREATED)] if is_there else [])


def test_a_failing_watcher_fails_neither_the_commit_nor_the_others() -> None:
    def fails(change: NodeChanged) -> None:
        raise RuntimeError(change.path)

    async def scenario() -> tuple[list[NodeChanged], list[str]]:
        heard: list[NodeChanged] = []
        problems: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context["message"]))
        store = await EmbeddedStore.open(None)
        store.watch("/", fails)
        store.watch("/", heard.append)
        await store.multi([Create("/a")])
        await store.close()
        return heard, problems

    heard, problems = run(scenario())
    assert len(heard) == len(problems) == 1


def test_a_closed_store_says_so() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        await store.close()
        await store.close()
        with pytest.raises(StoreFailed, match="closed"):
            await store.get("/")

    run(scenario())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(OPERATIONS, max_size=4), max_size=12))
def test_the_tree_behaves_as_its_model(multis: list[list[Operation]]) -> None:
    tree, model = SqliteTree(None), ModelTree()
    for operations in multis:
        expected = outcome(lambda operations=operations: model.multi(operations))  # type: ignore[misc]
        assert outcome(lambda operations=operations: tree.multi(operations)) == expected  # type: ignore[misc]
        assert contents(tree) == model.nodes
    tree.close()


def outcome(call: Any) -> tuple[type[StoreConflict], str] | None:
    try:
        call()
    except StoreConflict as conflict:
        return type(conflict), conflict.path
    return None
