"""Splitting a stream: each record goes to the first branch whose predicate holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.streams.failures import TopologyError
from ottla.streams.operators import Branch, Function, PassThrough

if TYPE_CHECKING:
    from ottla.streams.stream import KStream


@dataclass(slots=True, eq=False)
class BranchedStream:
    """A stream being split. Records that fit no branch are dropped, unless there is a default."""

    stream: KStream
    name: str | None
    branches: dict[str, KStream] = field(default_factory=dict)
    _node: str | None = None
    _predicates: list[Function | None] = field(default_factory=list)

    def branch(self, predicate: Function, *, name: str | None = None) -> BranchedStream:
        """Records for which the predicate holds, of those no branch before has taken."""
        self._add(predicate, name or str(len(self._predicates) + 1))
        return self

    def default_branch(self, *, name: str = "0") -> dict[str, KStream]:
        """All other records; ends the split and returns every branch by name."""
        self._add(None, name)
        return self.branches

    def no_default_branch(self) -> dict[str, KStream]:
        """Ends the split; other records are dropped. Every branch by name."""
        return self.branches

    def _add(self, predicate: Function | None, name: str) -> None:
        if self._predicates and self._predicates[-1] is None:
            raise TopologyError("the default branch takes what is left; no branch can follow it")
        if name in self.branches:
            raise TopologyError(f"there are two branches named {name!r}; give one another name")
        graph, stream = self.stream.graph, self.stream
        self._predicates.append(predicate)
        operator = Branch(tuple(self._predicates))
        if self._node is None:
            named = self.name or graph.new_name("KSTREAM-BRANCH")
            self._node = graph.add(named, operator, [stream.node])
        else:
            graph.change(self._node, operator)
        child = graph.add(f"{self._node}-{name}", PassThrough(), [self._node])
        self.branches[name] = type(stream)(graph, child, stream.key, stream.value, stream.moved)
