"""The versioned tree in one SQLite file. Blocks while it works; does not know threads or watchers.

One process has the file open at a time and is its only session, so that ephemeral nodes found when
it is opened are remains of a killed one and are removed. A commit is durable when it returns
(write-ahead log, synchronous=FULL).

Damage is found when the file is opened, and refused: SQLite checks its pages, a checksum guards
each node, and the commit mark tells of commits that are missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

from ottla.cluster.commit_mark import CommitMark
from ottla.cluster.store import (
    ANY_VERSION,
    ROOT,
    BadVersion,
    ChangeKind,
    Check,
    Create,
    Delete,
    Done,
    MetadataDamaged,
    NoChildrenAllowed,
    Node,
    NodeChanged,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SetData,
    StoreFailed,
    check_path,
    name_of,
    parent_of,
)

APPLICATION_ID: Final = 0x4F54544C
"""Marks the file as ours in SQLite's own header: "OTTL"."""
FORMAT: Final = 2
"""Nodes have checksums since 2."""
MARK_SUFFIX: Final = "-mark"
IN_MEMORY: Final = ":memory:"
SESSION_ID: Final = 1
"""The owner of every ephemeral node, which is just what the column `is_ephemeral` holds."""

_SCHEMA: Final = """
CREATE TABLE nodes (
    path TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    czxid INTEGER NOT NULL,
    mzxid INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    is_ephemeral INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX nodes_by_parent ON nodes (parent);
CREATE INDEX ephemeral_nodes ON nodes (path) WHERE is_ephemeral;
CREATE TABLE counter (zxid INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
INSERT INTO nodes VALUES ('/', '', x'', 0, 0, 0, 0, 0, ottla_checksum('/', x'', 0));
"""
_ADD_CHECKSUMS: Final = """
ALTER TABLE nodes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE nodes SET checksum = ottla_checksum(path, data, version);
"""


class SqliteTree:
    """The tree of one file, or of memory where there is no path."""

    def __init__(self, path: Path | None) -> None:
        self._name = str(path) if path is not None else IN_MEMORY
        try:
            self._mark = CommitMark(Path(self._name + MARK_SUFFIX)) if path is not None else None
        except OSError as error:
            raise StoreFailed(f"{self._name} cannot be used ({error.strerror})") from error
        try:
            if path is not None and (not path.exists() or not path.stat().st_size):
                self._expect_commits(0)  # before SQLite throws away a log that it could not use
            with self._translated():
                self._connection = sqlite3.connect(self._name, isolation_level=None, timeout=0.2)
        except BaseException:
            self._close_mark()
            raise
        try:
            with self._translated():
                self._open()
        except BaseException:
            self._close_files()
            raise

    def get(self, path: str) -> Node | None:
        with self._translated():
            row = self._connection.execute(
                "SELECT data, version, czxid, mzxid, is_ephemeral FROM nodes WHERE path = ?",
                (path,),
            ).fetchone()
        return Node(*row) if row is not None else None

    def children(self, path: str) -> list[str]:
        with self._translated():
            if self._version(path) is None:
                raise NoNode(path)
            rows = self._connection.execute(
                "SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,)
            )
            return [name_of(child) for (child,) in rows]

    def read_all(self, prefix: str) -> dict[str, Node]:
        # "0" is the character after "/", so that the range holds just the paths below the prefix.
        below = prefix.rstrip("/")
        with self._translated():
            rows = self._connection.execute(
                "SELECT path, data, version, czxid, mzxid, is_ephemeral FROM nodes"
                " WHERE path = ? OR (path >= ? AND path < ?) ORDER BY path",
                (prefix, f"{below}/", f"{below}0"),
            )
            return {path: Node(*rest) for path, *rest in rows}

    def multi(self, operations: Sequence[Operation]) -> tuple[list[Done], list[NodeChanged]]:
        """Do all in one transaction; the second list is what watchers are to be told."""
        changes: list[NodeChanged] = []
        with self._translated(), self._transaction():
            zxid = self._next_zxid()
            done = [self._do(operation, zxid, changes) for operation in operations]
        self._note(zxid)
        return done, changes

    def checkpoint(self) -> None:
        """Move what was committed from the write-ahead log into the file, which then is all there
        is to copy."""
        with self._translated():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> list[NodeChanged]:
        """End the session and close the file; what watchers are to be told."""
        try:
            with self._translated(), self._transaction():
                return self._end_ephemeral_nodes()
        finally:
            self._close_files()

    def _open(self) -> None:
        execute = self._connection.execute
        self._connection.create_function("ottla_checksum", 3, _checksum, deterministic=True)
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        application = execute("PRAGMA application_id").fetchone()[0]
        found_format = execute("PRAGMA user_version").fetchone()[0]
        is_empty = execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if is_empty and application == 0:
            self._create()
        elif application != APPLICATION_ID:
            raise StoreFailed(f"{self._name} is a database of another program; move it away")
        elif found_format > FORMAT:
            raise StoreFailed(
                f"{self._name} was written by a newer version (format {found_format}, this one"
                f" reads {FORMAT}); start that version instead"
            )
        verdict = execute("PRAGMA integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise self._damaged(verdict.splitlines()[-1])
        if not is_empty and found_format < FORMAT:
            self._run(_ADD_CHECKSUMS)
        self._check_nodes()
        zxid = int(execute("SELECT zxid FROM counter").fetchone()[0])
        self._expect_commits(zxid)
        self._note(zxid)
        with self._transaction():
            self._end_ephemeral_nodes()

    def _create(self) -> None:
        self._run(_SCHEMA)

    def _run(self, script: str) -> None:
        """Make or change the tables, all or nothing."""
        with self._transaction():
            for statement in script.split(";"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _check_nodes(self) -> None:
        row = self._connection.execute(
            "SELECT path FROM nodes WHERE checksum != ottla_checksum(path, data, version) LIMIT 1"
        ).fetchone()
        if row is not None:
            raise self._damaged(f"the checksum of {row[0]} is wrong")

    def _expect_commits(self, found: int) -> None:
        """Refuse a tree that lacks the newest commits."""
        committed = self._mark.read() if self._mark is not None else 0
        if found < committed:
            raise self._damaged(f"it ends at commit {found}, and {committed} were made")

    def _note(self, zxid: int) -> None:
        if self._mark is not None:
            self._mark.write(zxid)

    def _close_files(self) -> None:
        self._connection.close()
        self._close_mark()

    def _close_mark(self) -> None:
        if self._mark is not None:
            self._mark.close()

    def _end_ephemeral_nodes(self) -> list[NodeChanged]:
        rows = self._connection.execute("SELECT path FROM nodes WHERE is_ephemeral").fetchall()
        self._connection.execute("DELETE FROM nodes WHERE is_ephemeral")
        return [NodeChanged(path, ChangeKind.DELETED) for (path,) in rows]

    def _next_zxid(self) -> int:
        self._connection.execute("UPDATE counter SET zxid = zxid + 1")
        return int(self._connection.execute("SELECT zxid FROM counter").fetchone()[0])

    def _do(self, operation: Operation, zxid: int, changes: list[NodeChanged]) -> Done:
        check_path(operation.path)
        match operation:
            case Create():
                done = self._create_node(operation, zxid)
                changes.append(NodeChanged(done.path, ChangeKind.CREATED))
            case SetData():
                done = self._set_data(operation, zxid)
                changes.append(NodeChanged(done.path, ChangeKind.CHANGED))
            case Delete():
                done = self._delete(operation)
                changes.append(NodeChanged(done.path, ChangeKind.DELETED))
            case Check():
                done = Done(operation.path, self._expect(operation.path, operation.version))
        return done

    def _create_node(self, create: Create, zxid: int) -> Done:
        path = create.path
        parent = parent_of(path)
        row = self._connection.execute(
            "SELECT sequence, is_ephemeral FROM nodes WHERE path = ?", (parent,)
        ).fetchone()
        if row is None:
            raise NodeExists(path) if path == ROOT else NoNode(parent)
        sequence, is_ephemeral = row
        if is_ephemeral:
            raise NoChildrenAllowed(parent)
        if create.is_sequential:
            path = f"{path}{sequence:010d}"
            self._connection.execute(
                "UPDATE nodes SET sequence = sequence + 1 WHERE path = ?", (parent,)
            )
        if self._version(path) is not None:
            raise NodeExists(path)
        checksum = _checksum(path, create.data, 0)
        values = (path, parent, create.data, zxid, zxid, create.is_ephemeral, checksum)
        self._connection.execute("INSERT INTO nodes VALUES (?, ?, ?, 0, ?, ?, 0, ?, ?)", values)
        return Done(path, 0, zxid)

    def _set_data(self, change: SetData, zxid: int) -> Done:
        version = self._expect(change.path, change.version) + 1
        self._connection.execute(
            "UPDATE nodes SET data = ?, version = ?, mzxid = ?, checksum = ? WHERE path = ?",
            (change.data, version, zxid, _checksum(change.path, change.data, version), change.path),
        )
        row = self._connection.execute(
            "SELECT czxid FROM nodes WHERE path = ?", (change.path,)
        ).fetchone()
        return Done(change.path, version, row[0])

    def _delete(self, delete: Delete) -> Done:
        version = self._expect(delete.path, delete.version)
        child = self._connection.execute(
            "SELECT 1 FROM nodes WHERE parent = ? LIMIT 1", (delete.path,)
        ).fetchone()
        if child is not None or delete.path == ROOT:
            raise NotEmpty(delete.path)
        self._connection.execute("DELETE FROM nodes WHERE path = ?", (delete.path,))
        return Done(delete.path, version)

    def _expect(self, path: str, version: int) -> int:
        """The node's version, which must be the expected one."""
        found = self._version(path)
        if found is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, found):
            raise BadVersion(path, version, found)
        return found

    def _version(self, path: str) -> int | None:
        row = self._connection.execute(
            "SELECT version FROM nodes WHERE path = ?", (path,)
        ).fetchone()
        return int(row[0]) if row is not None else None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself after some errors, such as a full disk.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """SQLite's errors as sentences with what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreFailed(f"{self._name} is in use by another process; stop it") from error
            raise StoreFailed(f"{self._name} cannot be used ({error})") from error
        except sqlite3.ProgrammingError as error:
            raise StoreFailed(f"{self._name} is closed") from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> MetadataDamaged:
        return MetadataDamaged(self._name, reason)


def _checksum(path: str, data: bytes, version: int) -> int:
    return crc32(data, crc32(f"{path} {version}".encode()))
