"""KStream: records one after the other, each a fact of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.streams import joins
from ottla.streams.branching import BranchedStream
from ottla.streams.expressions import checked_function
from ottla.streams.failures import TopologyError
from ottla.streams.graph import Graph, Repartition
from ottla.streams.operators import (
    Filter,
    FlatMap,
    FlatMapValues,
    Function,
    JoinKind,
    Map,
    MapValues,
    Operator,
    PassThrough,
    Peek,
    Process,
    SelectKey,
    Sink,
    TableSource,
)
from ottla.streams.serdes import Serde, SerdeChoice, serde_for
from ottla.streams.store_spec import StoreKind, StoreSpec
from ottla.streams.windows import JoinWindows

if TYPE_CHECKING:
    from ottla.streams.global_table import GlobalKTable
    from ottla.streams.grouped import KGroupedStream
    from ottla.streams.table import KTable


@dataclass(frozen=True, slots=True, eq=False)
class KStream:
    """A stream of records in a topology that is being drawn.

    `key` and `value` of the operators name the serde of what comes out of them. `moved` says that
    keys may have changed: records go through a topic before they are grouped or joined.
    """

    graph: Graph
    node: str
    key: Serde
    value: Serde
    moved: bool = False

    # --- record by record ------------------------------------------------------------------------

    def filter(self, predicate: Function, *, name: str | None = None) -> KStream:
        """Records for which `predicate(key, value)`, or an expression, holds."""
        return self._same("KSTREAM-FILTER", Filter(checked_function(predicate)), name)

    def filter_not(self, predicate: Function, *, name: str | None = None) -> KStream:
        """Records for which the predicate does not hold."""
        return self._same("KSTREAM-FILTER", Filter(checked_function(predicate), negated=True), name)

    def map(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """`mapper(key, value)` gives the new key and value."""
        return self._new("KSTREAM-MAP", Map(checked_function(mapper)), name).with_serdes(key, value)

    def map_values(
        self,
        mapper: Function,
        *,
        value: SerdeChoice | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> KStream:
        """`mapper(value)`, with_key `mapper(key, value)`, or an expression gives the new value."""
        operator = MapValues(checked_function(mapper), with_key)
        return self._same("KSTREAM-MAPVALUES", operator, name).with_value(value)

    def flat_map(
        self,
        mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]],
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """`mapper(key, value)` gives any number of keys and values."""
        return self._new("KSTREAM-FLATMAP", FlatMap(checked_function(mapper)), name).with_serdes(
            key, value
        )

    def flat_map_values(
        self,
        mapper: Callable[..., Iterable[Any]],
        *,
        value: SerdeChoice | None = None,
        with_key: bool = False,
        name: str | None = None,
    ) -> KStream:
        """`mapper(value)` gives any number of values for the same key."""
        operator = FlatMapValues(checked_function(mapper), with_key)
        return self._same("KSTREAM-FLATMAPVALUES", operator, name).with_value(value)

    def select_key(
        self, selector: Function, *, key: SerdeChoice | None = None, name: str | None = None
    ) -> KStream:
        """`selector(key, value)`, or an expression, gives the new key."""
        drawn = self._new("KSTREAM-KEY-SELECT", SelectKey(checked_function(selector)), name)
        return KStream(self.graph, drawn.node, self.graph.key_serde(key), self.value, moved=True)

    def peek(self, action: Callable[[Any, Any], Any], *, name: str | None = None) -> KStream:
        """Calls `action(key, value)` and goes on with the same record."""
        return self._same("KSTREAM-PEEK", Peek(checked_function(action)), name)

    def foreach(self, action: Callable[[Any, Any], Any], *, name: str | None = None) -> None:
        """Calls `action(key, value)` for every record; nothing comes out."""
        self._same("KSTREAM-FOREACH", Peek(checked_function(action), forwards=False), name)

    def process(
        self,
        processor: Callable[..., Any],
        *,
        stores: Sequence[str] = (),
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """A processor of your own: a class, or a function of record and context."""
        drawn = self._new("KSTREAM-PROCESSOR", Process(checked_function(processor)), name, stores)
        return drawn.with_serdes(key, value)

    def process_values(
        self,
        processor: Callable[..., Any],
        *,
        stores: Sequence[str] = (),
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """A processor of your own that leaves keys as they are."""
        operator = Process(checked_function(processor), keeps_key=True)
        return self._same("KSTREAM-PROCESSVALUES", operator, name, stores).with_value(value)

    # --- splitting and merging -------------------------------------------------------------------

    def split(self, *, name: str | None = None) -> BranchedStream:
        """Begins branches: each record goes to the first whose predicate holds."""
        return BranchedStream(self, name)

    def merge(self, *others: KStream, name: str | None = None) -> KStream:
        """The records of all these streams; those of each stay in their order."""
        for other in others:
            _check_mergeable(self, other)
        parents = [self.node, *(other.node for other in others)]
        named = name or self.graph.new_name("KSTREAM-MERGE")
        node = self.graph.add(named, PassThrough(), parents)
        moved = self.moved or any(other.moved for other in others)
        return KStream(self.graph, node, self.key, self.value, moved)

    def repartition(
        self,
        *,
        partitions: int | None = None,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        partitioner: Callable[[Any, Any, int], int] | None = None,
        name: str | None = None,
    ) -> KStream:
        """Sends the records through a topic of the application's own, by key."""
        if partitions is not None and partitions < 1:
            raise TopologyError(f"a topic has at least one partition, not {partitions}")
        base = name or self.graph.new_name("KSTREAM-REPARTITION")
        drawn = self.with_serdes_if(key, value)
        how = Repartition(base, drawn.key, drawn.value, True, partitions, partitioner)
        node = self.graph.through_topic(self.node, how)
        return KStream(self.graph, node, drawn.key, drawn.value)

    def to(
        self,
        topic: str | Callable[[Any, Any], str],
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        partitioner: Callable[[Any, Any, int], int] | None = None,
        name: str | None = None,
    ) -> None:
        """Writes the records to a topic, or to the one `topic(key, value)` names."""
        drawn = self.with_serdes_if(key, value)
        if not callable(topic) and not (isinstance(topic, str) and topic):
            raise TopologyError(f"{topic!r} cannot be the name of a topic")
        sink = Sink(topic, drawn.key, drawn.value, partitioner=partitioner)
        self._add("KSTREAM-SINK", sink, name)

    # --- to tables and groups --------------------------------------------------------------------

    def to_table(
        self,
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """Reads every record as the new value of its key."""
        from ottla.streams.table import KTable

        base = name or self.graph.new_name("KSTREAM-TOTABLE")
        stream = self.with_serdes_if(key, value).settled(base, drops_null_keys=True)
        named = store or self.graph.new_name("KSTREAM-TOTABLE-STATE-STORE")
        self.graph.add_store(StoreSpec(named, StoreKind.TABLE, stream.key, stream.value))
        operator = TableSource(named, materialized=store is not None)
        node = self.graph.add(base, operator, [stream.node], [named] if store else [])
        return KTable(self.graph, node, stream.key, stream.value)

    def group_by_key(
        self, *, key: SerdeChoice | None = None, value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KGroupedStream:  # fmt: skip
        """Records of the same key belong together."""
        from ottla.streams.grouped import KGroupedStream

        return KGroupedStream(self.with_serdes_if(key, value), name)

    def group_by(
        self,
        selector: Function,
        *,
        key: SerdeChoice | None = None,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KGroupedStream:
        """Records for which `selector(key, value)` is the same belong together."""
        from ottla.streams.grouped import KGroupedStream

        selected = self.select_key(selector, key=key, name=name and f"{name}-select")
        return KGroupedStream(selected.with_serdes_if(None, value), name)

    # --- joins -----------------------------------------------------------------------------------

    def join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        *,
        within: JoinWindows | None = None,
        on: Function | None = None,
        with_key: bool = False,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """Records that have a partner, as `joiner(value, other_value)`.

        With a stream: `within` a window. With a table: its value at that moment. With a global
        table: of the key `on(key, value)` gives.
        """
        how = joins.How(JoinKind.INNER, joiner, with_key, name)
        return joins.join_stream(self, other, how, within=within, on=on).with_value(value)

    def left_join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Callable[..., Any],
        *,
        within: JoinWindows | None = None,
        on: Function | None = None,
        with_key: bool = False,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """As `join`; a record without a partner comes with None, from streams once it is sure."""
        how = joins.How(JoinKind.LEFT, joiner, with_key, name)
        return joins.join_stream(self, other, how, within=within, on=on).with_value(value)

    def outer_join(
        self,
        other: KStream,
        joiner: Callable[..., Any],
        *,
        within: JoinWindows,
        with_key: bool = False,
        value: SerdeChoice | None = None,
        name: str | None = None,
    ) -> KStream:
        """As `left_join`, and the other stream's records without a partner come as well."""
        how = joins.How(JoinKind.OUTER, joiner, with_key, name)
        return joins.join_stream(self, other, how, within=within, on=None).with_value(value)

    # --- drawing ---------------------------------------------------------------------------------

    def with_serdes(self, key: SerdeChoice | None, value: SerdeChoice | None) -> KStream:
        """New serdes; what is not given becomes the builder's default."""
        keys, values = self.graph.key_serde(key), self.graph.value_serde(value)
        return KStream(self.graph, self.node, keys, values, self.moved)

    def with_value(self, value: SerdeChoice | None) -> KStream:
        return KStream(self.graph, self.node, self.key, self.graph.value_serde(value), self.moved)

    def with_serdes_if(self, key: SerdeChoice | None, value: SerdeChoice | None) -> KStream:
        """New serdes; what is not given stays."""
        keys = self.key if key is None else serde_for(key)
        values = self.value if value is None else serde_for(value)
        return KStream(self.graph, self.node, keys, values, self.moved)

    def settled(self, name: str, *, drops_null_keys: bool = False) -> KStream:
        """This stream with its records where their keys belong."""
        if not self.moved:
            return self
        how = Repartition(name, self.key, self.value, drops_null_keys)
        return KStream(self.graph, self.graph.through_topic(self.node, how), self.key, self.value)

    def _add(
        self, prefix: str, operator: Operator, name: str | None, stores: Sequence[str] = ()
    ) -> str:
        named = name or self.graph.new_name(prefix)
        return self.graph.add(named, operator, [self.node], stores)

    def _same(
        self, prefix: str, operator: Operator, name: str | None, stores: Sequence[str] = ()
    ) -> KStream:
        node = self._add(prefix, operator, name, stores)
        return KStream(self.graph, node, self.key, self.value, self.moved)

    def _new(
        self, prefix: str, operator: Operator, name: str | None, stores: Sequence[str] = ()
    ) -> KStream:
        node = self._add(prefix, operator, name, stores)
        return KStream(self.graph, node, self.key, self.value, moved=True)


def _check_mergeable(stream: KStream, other: KStream) -> None:
    if not isinstance(other, KStream):
        raise TopologyError(f"only streams can be merged, not a {type(other).__name__}")
    if other.graph is not stream.graph:
        raise TopologyError("the streams come from different builders; use one builder")
