"""What a node of a topology does, as plain data. How it is done stands in `engine/`.

Streams carry values; tables carry changes (new value, old value). `sends_old` says whether a
table's node is asked for old values: nodes below may need them, and some then say less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ottla.streams.expressions import Expression
from ottla.streams.serdes import Serde
from ottla.streams.suppression import Suppressed
from ottla.streams.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows

Function = Callable[..., Any] | Expression


class JoinKind(Enum):
    """Whose records come through without a partner."""

    INNER = "inner"
    LEFT = "left"
    OUTER = "outer"


# --- in and out ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """Reads topics. Internal ones are named without the application's id."""

    topics: tuple[str, ...]
    key: Serde
    value: Serde
    internal: bool = False
    timestamp_of: Callable[..., int] | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    """Writes a topic, or the topic a function of key and value names."""

    topic: str | Callable[[Any, Any], str]
    key: Serde
    value: Serde
    internal: bool = False
    partitioner: Callable[[Any, Any, int], int] | None = None


# --- streams, record by record -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    predicate: Function
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Map:
    mapper: Function


@dataclass(frozen=True, slots=True)
class MapValues:
    mapper: Function
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class SelectKey:
    selector: Function


@dataclass(frozen=True, slots=True)
class FlatMap:
    mapper: Function


@dataclass(frozen=True, slots=True)
class FlatMapValues:
    mapper: Function
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class Peek:
    action: Callable[[Any, Any], Any]
    forwards: bool = True


@dataclass(frozen=True, slots=True)
class Branch:
    """Sends a record to the child of the first predicate that holds; None holds always."""

    predicates: tuple[Function | None, ...]


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Joins its parents' records, or stands for a branch."""


@dataclass(frozen=True, slots=True)
class DropNullKeys:
    """In front of a repartition topic whose reader has no use for them."""


@dataclass(frozen=True, slots=True)
class Process:
    """A processor of the user's own: a class, or a function of record and context."""

    processor: Callable[..., Any]
    keeps_key: bool = False


# --- aggregates ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Count:
    """How many."""


@dataclass(frozen=True, slots=True)
class Reduce:
    reducer: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Fold:
    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any] | None = None


Aggregation = Count | Reduce | Fold


@dataclass(frozen=True, slots=True)
class Aggregate:
    store: str
    aggregation: Aggregation
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    store: str
    aggregation: Aggregation
    windows: TimeWindows | SlidingWindows | SessionWindows
    emits_on_close: bool = False
    sends_old: bool = False


# --- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableSource:
    """A stream read as a table. Its store is kept only if somebody looks into it."""

    store: str
    materialized: bool = False
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class TableFilter:
    predicate: Function
    negated: bool = False
    store: str | None = None
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class TableMapValues:
    mapper: Function
    with_key: bool = False
    store: str | None = None
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class TablePassThrough:
    """Joins the updates of the aggregates that share one store."""

    store: str


@dataclass(frozen=True, slots=True)
class TableToStream:
    """Every change becomes a record of the new value."""


@dataclass(frozen=True, slots=True)
class TableGroup:
    """Every change becomes a subtraction from its old group and an addition to its new one."""

    mapper: Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class TableAggregate:
    store: str
    adding: Aggregation
    removing: Callable[..., Any] | None
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class Suppress:
    store: str
    suppressed: Suppressed
    grace_ms: int


# --- joins ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RememberForJoin:
    """Keeps a stream's records where the other side of its join finds them."""

    store: str


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """One side of a stream-stream join. `pending` keeps what may yet find a partner."""

    name: str
    """Of the whole join: both sides share what time it is."""
    other_store: str
    joiner: Callable[..., Any]
    windows: JoinWindows
    is_left: bool
    outer: bool
    with_key: bool = False
    pending: str | None = None


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    table: str
    joiner: Callable[..., Any]
    left: bool = False
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class StreamGlobalJoin:
    store: str
    selector: Function
    joiner: Callable[..., Any]
    left: bool = False
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class TableJoin:
    """One side of a table-table join; `other` is the table looked up."""

    other: str
    joiner: Callable[[Any, Any], Any]
    kind: JoinKind
    is_left: bool
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class TableJoinMerge:
    """Both sides' results; also where the joined table is looked up."""

    left: str
    right: str
    joiner: Callable[[Any, Any], Any]
    kind: JoinKind
    store: str | None = None
    sends_old: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The primary side of a foreign-key join tells the foreign side which record it wants."""

    foreign_key_of: Callable[..., Any]
    value: Serde
    left: bool = False


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The foreign side keeps subscriptions and answers each with its present record."""

    store: str
    table: str
    foreign_key: Serde
    primary_key: Serde


@dataclass(frozen=True, slots=True)
class AnswerSubscribers:
    """The foreign side tells all subscribers of a record that it changed."""

    store: str
    foreign_key: Serde
    primary_key: Serde


@dataclass(frozen=True, slots=True)
class ResolveAnswers:
    """The primary side joins an answer, if its record is still the one that asked."""

    table: str
    joiner: Callable[[Any, Any], Any]
    value: Serde
    left: bool = False


Operator = (
    Source
    | Sink
    | Filter
    | Map
    | MapValues
    | SelectKey
    | FlatMap
    | FlatMapValues
    | Peek
    | Branch
    | PassThrough
    | DropNullKeys
    | Process
    | Aggregate
    | WindowAggregate
    | TableSource
    | TableFilter
    | TableMapValues
    | TablePassThrough
    | TableToStream
    | TableGroup
    | TableAggregate
    | Suppress
    | RememberForJoin
    | StreamJoin
    | StreamTableJoin
    | StreamGlobalJoin
    | TableJoin
    | TableJoinMerge
    | Subscribe
    | Subscriptions
    | AnswerSubscribers
    | ResolveAnswers
)
