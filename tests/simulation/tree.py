"""ZooKeeper's tree in memory, with its rules: versions, zxids, ephemeral and sequential nodes.

Speaks ZooKeeper's own requests and results (`zookeeper_wire`). Does not know connections or time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from struct import Struct

from ottla.cluster import zookeeper_wire as wire
from ottla.cluster.store import Check, Create, Delete, Operation, SetData, child_of, parent_of
from ottla.cluster.zookeeper_client import Changed, Request

_INT = Struct("!i")
_HEADER = Struct("!i?i")
Result = wire.Created | wire.Stat | wire.Failed | None


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node. `sequence` counts what was made under it."""

    data: bytes
    version: int
    czxid: int
    mzxid: int
    owner: int = 0
    sequence: int = 0


class Refusal(Exception):
    """An operation cannot be done."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


class Tree:
    """The nodes by path."""

    def __init__(self) -> None:
        self.nodes: dict[str, TreeNode] = {"/": TreeNode(b"", 0, 0, 0)}
        self._children: dict[str, dict[str, None]] = {"/": {}}
        self._zxid = 0

    def stat(self, path: str) -> wire.Stat:
        node = self.nodes[path]
        count = len(self._children.get(path, ()))
        return wire.Stat(node.czxid, node.mzxid, node.version, node.owner, count)

    # --- reading ---

    def read(self, request: Request) -> list[object]:
        """The answer to a packet of reads."""
        return [self._read(kind, path) for kind, path in _reads(request.serialize())]

    def _read(self, kind: int, path: str) -> object:
        if path not in self.nodes:
            return wire.Failed(wire.NO_NODE)
        if kind == wire.OperationType.GET_DATA:
            return wire.Found(self.nodes[path].data, self.stat(path))
        return sorted(self._children.get(path, ()))

    # --- changing ---

    def multi(self, request: wire.Multi, session_id: int) -> tuple[list[Result], list[Changed]]:
        """Everything, or nothing; and what watches are told of it."""
        operations = list(_operations(request.serialize()))
        nodes, children = dict(self.nodes), {path: dict(c) for path, c in self._children.items()}
        self._zxid += 1
        results: list[Result] = []
        changes: list[Changed] = []
        try:
            results.extend(self._do(each, session_id, changes) for each in operations)
        except Refusal as refusal:
            self.nodes, self._children = nodes, children
            left = len(operations) - len(results) - 1
            before = [wire.Failed(wire.OK)] * len(results)
            after = [wire.Failed(wire.ROLLED_BACK)] * left
            return [*before, wire.Failed(refusal.code), *after], []
        return results, changes

    def end_session(self, session_id: int) -> list[Changed]:
        """The session's ephemeral nodes go."""
        gone = sorted(path for path, node in self.nodes.items() if node.owner == session_id)
        self._zxid += 1
        for path in gone:
            self._remove(path)
        return [Changed(wire.EventType.DELETED, path) for path in gone]

    def _do(self, operation: Operation, session_id: int, changes: list[Changed]) -> Result:
        match operation:
            case Create():
                path = self._create(operation, session_id)
                changes.append(Changed(wire.EventType.CREATED, path))
                return wire.Created(path, self.stat(path))
            case SetData(path=path, data=data):
                node = self._expect(path, operation.version)
                changed = replace(node, data=data, version=node.version + 1, mzxid=self._zxid)
                self.nodes[path] = changed
                changes.append(Changed(wire.EventType.CHANGED, path))
                return self.stat(path)
            case Delete(path=path):
                self._expect(path, operation.version)
                if self._children.get(path):
                    raise Refusal(wire.NOT_EMPTY)
                self._remove(path)
                changes.append(Changed(wire.EventType.DELETED, path))
                return None
            case Check(path=path):
                self._expect(path, operation.version)
                return None

    def _create(self, create: Create, session_id: int) -> str:
        path, parent = create.path, parent_of(create.path)
        above = self.nodes.get(parent)
        if above is None:
            raise Refusal(wire.NO_NODE)
        if above.owner:
            raise Refusal(wire.NO_CHILDREN_FOR_EPHEMERALS)
        if create.is_sequential:
            path = f"{path}{above.sequence:010d}"
        if path in self.nodes:
            raise Refusal(wire.NODE_EXISTS)
        self.nodes[parent] = replace(above, sequence=above.sequence + 1)
        owner = session_id if create.is_ephemeral else 0
        self.nodes[path] = TreeNode(create.data, 0, self._zxid, self._zxid, owner)
        self._children.setdefault(parent, {})[path.rpartition("/")[2]] = None
        return path

    def _remove(self, path: str) -> None:
        del self.nodes[path]
        self._children.pop(path, None)
        parent, _, name = path.rpartition("/")
        del self._children[parent or "/"][name]

    def _expect(self, path: str, version: int) -> TreeNode:
        node = self.nodes.get(path)
        if node is None:
            raise Refusal(wire.NO_NODE)
        if version not in (-1, node.version):
            raise Refusal(wire.BAD_VERSION)
        return node

    def children(self, path: str) -> list[str]:
        """The paths right below, for whoever looks on from outside."""
        return [child_of(path, name) for name in sorted(self._children.get(path, ()))]


def _operations(data: bytes) -> Iterator[Operation]:
    """The operations of an encoded multi."""
    position = 0
    while True:
        kind, is_end, _ = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        if is_end:
            return
        path, position = _string(data, position)
        match kind:
            case wire.OperationType.CREATE_WITH_STAT:
                content, position = _buffer(data, position)
                position = _after_access(data, position)
                flags, position = _int(data, position)
                yield Create(path, content, bool(flags & 1), bool(flags & 2))
            case wire.OperationType.SET_DATA:
                content, position = _buffer(data, position)
                version, position = _int(data, position)
                yield SetData(path, content, version)
            case wire.OperationType.DELETE:
                version, position = _int(data, position)
                yield Delete(path, version)
            case _:
                version, position = _int(data, position)
                yield Check(path, version)


def _reads(data: bytes) -> Iterator[tuple[int, str]]:
    position = 0
    while True:
        kind, is_end, _ = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        if is_end:
            return
        path, position = _string(data, position)
        position += 1  # whether a watch is wanted
        yield kind, path


def _after_access(data: bytes, position: int) -> int:
    count, position = _int(data, position)
    for _ in range(count):
        position += _INT.size
        _, position = _string(data, position)
        _, position = _string(data, position)
    return position


def _int(data: bytes, position: int) -> tuple[int, int]:
    return _INT.unpack_from(data, position)[0], position + _INT.size


def _buffer(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _int(data, position)
    end = position + max(size, 0)
    return data[position:end], end


def _string(data: bytes, position: int) -> tuple[str, int]:
    content, position = _buffer(data, position)
    return content.decode(), position
