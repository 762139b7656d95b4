"""Records that belong together, ready to be counted, reduced or aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ottla.streams.failures import TopologyError
from ottla.streams.graph import Repartition
from ottla.streams.operators import (
    Aggregate,
    Aggregation,
    Count,
    Fold,
    Reduce,
    WindowAggregate,
)
from ottla.streams.serdes import (
    NamedSerde,
    Serde,
    SerdeChoice,
    SessionWindowedSerde,
    TimeWindowedSerde,
    serde_for,
)
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.windows import AnyWindows, SessionWindows, SlidingWindows, TimeWindows

if TYPE_CHECKING:
    from ottla.streams.cogrouped import CogroupedStream
    from ottla.streams.stream import KStream
    from ottla.streams.table import KTable

Emit = Literal["update", "close"]
"""When a window's result is sent: at every update, or once, when the window closes."""


@dataclass(slots=True, eq=False)
class KGroupedStream:
    """A stream grouped by key. Several aggregates of it share one repartition topic."""

    stream: KStream
    name: str | None = None
    _settled: KStream | None = field(default=None)

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        """How many records each key has had."""
        return self._table(Count(), NamedSerde("int"), store, name)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        *,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`reducer(result, value)`; a key's first value is its first result."""
        serde = self.stream.value if value is None else serde_for(value)
        return self._table(Reduce(reducer), serde, store, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        *,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`aggregator(key, value, result)` makes a new result, beginning with `initializer()`."""
        serde = self.stream.graph.value_serde(value)
        return self._table(Fold(checked_initializer(initializer), aggregator), serde, store, name)

    def cogroup(self, aggregator: Callable[[Any, Any, Any], Any]) -> CogroupedStream:
        """Begins one result of several grouped streams."""
        from ottla.streams.cogrouped import CogroupedStream

        return CogroupedStream(self.stream.graph).cogroup(self, aggregator)

    def windowed_by(self, windows: AnyWindows, *, emit: Emit = "update") -> WindowedKStream:
        """The same, in every window of its own."""
        return WindowedKStream(self, checked_windows(windows), checked_emit(emit))

    def settled(self, base: str) -> KStream:
        """The stream with its records where their keys belong; always the same one."""
        if self._settled is None:
            self._settled = self.stream.settled(self.name or base, drops_null_keys=True)
        return self._settled

    def _table(
        self, aggregation: Aggregation, value: Serde, store: str | None, name: str | None
    ) -> KTable:
        from ottla.streams.table import KTable

        graph = self.stream.graph
        named = store or graph.new_name("KSTREAM-AGGREGATE-STATE-STORE")
        base = name or graph.new_name("KSTREAM-AGGREGATE")
        stream = self.settled(named)
        graph.add_store(StoreSpec(named, StoreKind.TABLE, stream.key, value))
        node = graph.add(base, Aggregate(named, aggregation), [stream.node], [named])
        return KTable(graph, node, stream.key, value)


@dataclass(frozen=True, slots=True, eq=False)
class WindowedKStream:
    """A grouped stream cut into windows. Keys of the results are `Windowed`."""

    grouped: KGroupedStream
    windows: AnyWindows
    emit: Emit

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        """How many records each key has had in each window."""
        return self._table(Count(), NamedSerde("int"), store, name)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        *,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`reducer(result, value)`; a window's first value is its first result."""
        serde = self.grouped.stream.value if value is None else serde_for(value)
        return self._table(Reduce(reducer), serde, store, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        *,
        merger: Callable[[Any, Any, Any], Any] | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`aggregator(key, value, result)`; sessions also need `merger(key, result, result)`."""
        check_merger(self.windows, merger)
        fold = Fold(checked_initializer(initializer), aggregator, merger)
        return self._table(fold, self.grouped.stream.graph.value_serde(value), store, name)

    def _table(
        self, aggregation: Aggregation, value: Serde, store: str | None, name: str | None
    ) -> KTable:
        from ottla.streams.table import KTable

        graph = self.grouped.stream.graph
        named = store or graph.new_name("KSTREAM-AGGREGATE-STATE-STORE")
        base = name or graph.new_name("KSTREAM-AGGREGATE")
        stream = self.grouped.settled(named)
        graph.add_store(windowed_store(named, self.windows, self.emit, stream.key, value))
        operator = WindowAggregate(named, aggregation, self.windows, self.emit == "close")
        node = graph.add(base, operator, [stream.node], [named])
        return KTable(graph, node, windowed_key(self.windows, stream.key), value)


def windowed_store(
    name: str, windows: AnyWindows, emit: Emit, key: Serde, value: Serde
) -> StoreSpec:
    """The store in which an aggregate over these windows is kept."""
    match windows:
        case TimeWindows(size_ms, _, grace_ms):
            kind, size = StoreKind.WINDOW, size_ms
        case SlidingWindows(difference_ms, grace_ms):
            kind, size = StoreKind.WINDOW, difference_ms
        case SessionWindows(gap_ms, grace_ms):
            kind, size = StoreKind.SESSION, gap_ms
    # a sliding window's left neighbour is looked up two differences back; a session that ended
    # exactly gap and grace ago has not been emitted yet
    span = 2 * size if isinstance(windows, SlidingWindows) else size
    more = 1 if isinstance(windows, SessionWindows) and emit == "close" else 0
    return StoreSpec(name, kind, key, value, retention_ms=span + grace_ms + more, size_ms=size)


def windowed_key(windows: AnyWindows, key: Serde) -> Serde:
    """The serde of keys within these windows."""
    match windows:
        case TimeWindows(size_ms, _, _):
            return TimeWindowedSerde(key, size_ms)
        case SlidingWindows(difference_ms, _):
            return TimeWindowedSerde(key, difference_ms)
        case SessionWindows():
            return SessionWindowedSerde(key)


def table_repartition(name: str, key: Serde, value: Serde) -> Repartition:
    """How the changes of a table go to their groups."""
    from ottla.streams.engine.changes import ChangeSerde

    return Repartition(name, key, ChangeSerde(value))


def checked_windows(windows: Any) -> AnyWindows:
    """Refuses what is no window."""
    if isinstance(windows, TimeWindows | SlidingWindows | SessionWindows):
        return windows
    raise TopologyError(f"{windows!r} is no window; use tumbling, hopping, sliding or session")


def checked_emit(emit: str) -> Emit:
    """Refuses what is no way to emit."""
    if emit == "update":
        return "update"
    if emit == "close":
        return "close"
    raise TopologyError(f'a window emits on "update" or on "close", not on {emit!r}')


def check_merger(windows: AnyWindows | None, merger: Callable[..., Any] | None) -> None:
    """Refuses sessions that cannot become one."""
    if isinstance(windows, SessionWindows) and merger is None:
        raise TopologyError("sessions grow together: give merger(key, one_result, other_result)")


def checked_initializer(initializer: Any) -> Callable[[], Any]:
    """Refuses a first result where a function that makes one is needed."""
    if callable(initializer):
        return initializer  # type: ignore[no-any-return]
    raise TopologyError(
        f"the initializer must be a function that makes a first result, not {initializer!r}"
    )
