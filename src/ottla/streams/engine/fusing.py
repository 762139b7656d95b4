"""Stateless nodes that stand one below the other, as one function.

Filters, branches, changes of values and keys make up most of a topology, and each is little work.
Here their code is written together (`expression_code.py`): expressions become lines, functions of
the user's become calls, and a record goes through all of it in one Python function, to the leaves:
the first nodes that are of another kind. Whoever writes a chain says what is done at a leaf.

Invariants:
1. A record meets the nodes in the order they were drawn, each branch to its end before the next.
2. A value that several nodes get is one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ottla.streams.engine.wiring import Forward
from ottla.streams.expression_code import (
    Code,
    Name,
    Part,
    Same,
    Scope,
    maybe_negated,
    whole,
    write,
)
from ottla.streams.expressions import Expression
from ottla.streams.operators import (
    Branch,
    DropNullKeys,
    Filter,
    Function,
    MapValues,
    PassThrough,
    SelectKey,
)
from ottla.streams.topology import Node, Subtopology

Leaf = Callable[[Code, Scope, Node], None]
"""Writes what is done with a record that has come to a leaf."""
_KINDS: Final = (Filter, MapValues, SelectKey, Branch, DropNullKeys, PassThrough)
_SUBTOPOLOGIES_KEPT: Final = 64


def is_fused(node: Node) -> bool:
    """Whether a node's code is written into that of the node above it."""
    return isinstance(node.operator, _KINDS) and len(node.parents) == 1


@dataclass(frozen=True, slots=True)
class Chain:
    """The code of all nodes between a first one and the leaves below it."""

    make: Callable[..., Forward]
    """Takes what to do at each leaf."""
    leaves: tuple[str, ...]


def chains_of(part: Subtopology) -> Mapping[str, Chain]:
    """The chains of a sub-topology, by their first nodes; written once for the same object."""
    return _chains(Same(part))


@lru_cache(maxsize=_SUBTOPOLOGIES_KEPT)
def _chains(same: Same[Subtopology]) -> Mapping[str, Chain]:
    part = same.held
    nodes = {node.name: node for node in part.nodes}
    fused = [node for node in part.nodes if is_fused(node)]
    firsts = [node for node in fused if not is_fused(nodes[node.parents[0]])]
    found: dict[str, Chain] = {}
    while firsts:
        first = firsts.pop()
        found[first.name] = chain = _chain(part, first)
        # a chain ends early where blocks are too deep, and another one begins
        firsts += [nodes[leaf] for leaf in chain.leaves if is_fused(nodes[leaf])]
    return found


def _chain(part: Subtopology, first: Node) -> Chain:
    leaves: list[str] = []
    code = Code(depth=2)

    def go_on(code: Code, scope: Scope, node: Node) -> None:
        if node.name not in leaves:
            leaves.append(node.name)
        key, value = whole(code, scope, scope.key), whole(code, scope, scope.value)
        number = leaves.index(node.name)
        code.line(f"forward_{number}({key.text}, {value.text}, timestamp_ms, headers)")

    writer = ChainWriter(part, code, go_on)
    writer.write(first, Scope(Name("key"), Name("value")))
    parameters = ", ".join(f"forward_{number}" for number in range(len(leaves)))
    make = code.function(
        [f"def make({parameters}):", "    def run(key, value, timestamp_ms, headers):"],
        ["        return", "    return run"],
        "make",
    )
    return Chain(make, tuple(leaves))


class ChainWriter:
    """Writes the code of nodes and of all below them."""

    __slots__ = ("_children", "_code", "_leaf")

    def __init__(self, part: Subtopology, code: Code, leaf: Leaf) -> None:
        self._code = code
        self._leaf = leaf
        self._children: dict[str, list[Node]] = {node.name: [] for node in part.nodes}
        for node in part.nodes:
            for parent in node.parents:
                self._children[parent].append(node)

    def write(self, node: Node, scope: Scope) -> None:
        """What happens to a record that comes to this node."""
        if not is_fused(node) or self._code.is_deep:
            self._leaf(self._code, scope, node)
            return
        match node.operator:
            case Filter(predicate, negated):
                holds = self._predicate(predicate, scope, negated=negated)
                self._where(holds, node, scope)
            case DropNullKeys():
                key = whole(self._code, scope, scope.key)
                self._where(f"{key.text} is not None", node, scope)
            case MapValues(mapper, with_key):
                value = self._result(mapper, scope, with_key=with_key)
                self.write_below(node, scope.inside(value=value))
            case SelectKey(selector):
                selected = self._result(selector, scope)
                self.write_below(node, scope.inside(key=selected))
            case Branch(predicates):
                self._branch(predicates, node, scope)
            case _:
                self.write_below(node, scope)

    def write_below(self, node: Node, scope: Scope) -> None:
        """What happens to a record that a node sends on."""
        children = self._children[node.name]
        if len(children) > 1:  # they all get the same object
            whole(self._code, scope, scope.key)
            whole(self._code, scope, scope.value)
        for child in children:
            self.write(child, scope.inside())

    def _where(self, holds: str, node: Node, scope: Scope) -> None:
        with self._code.block(f"if {holds}:"):
            self.write_below(node, scope.inside())

    def _branch(self, predicates: tuple[Function | None, ...], node: Node, scope: Scope) -> None:
        """One after the other until one holds; children stand in the order of predicates."""
        with self._code.block("while True:"):
            inner = scope.inside()
            for predicate, child in zip(predicates, self._children[node.name], strict=True):
                holds = "True" if predicate is None else self._predicate(predicate, inner)
                with self._code.block(f"if {holds}:"):
                    self.write(child, inner.inside())
                    self._code.line("break")
            self._code.line("break")

    def _predicate(self, predicate: Function, scope: Scope, *, negated: bool = False) -> str:
        """An expression that is unknown keeps nothing, negated or not."""
        if isinstance(predicate, Expression):
            node = maybe_negated(predicate.node, negated)
            return whole(self._code, scope, write(self._code, scope, node)).text
        called = self._called(predicate, scope, with_key=True)
        return f"not {called}" if negated else called

    def _result(self, function: Function, scope: Scope, *, with_key: bool = True) -> Part:
        if isinstance(function, Expression):
            return write(self._code, scope, function.node)
        return self._code.set(self._called(function, scope, with_key=with_key))

    def _called(self, function: Callable[..., Any], scope: Scope, *, with_key: bool) -> str:
        name = self._code.constant(function)
        value = whole(self._code, scope, scope.value).text
        if not with_key:
            return f"{name}({value})"
        return f"{name}({whole(self._code, scope, scope.key).text}, {value})"
