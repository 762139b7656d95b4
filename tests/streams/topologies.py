"""The topologies of the semantics battery, by name.

All keys and values are strings. `java/TopologyCases.java` has the same topologies under the same
names, so that one case can be run by both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    KGroupedStream,
    KTable,
    Record,
    StreamsBuilder,
    Topology,
    Windowed,
    hopping,
    join_within,
    key_value_store,
    session,
    sliding,
    tumbling,
    until_time_limit,
    until_window_closes,
)

ALL: dict[str, Callable[[StreamsBuilder], None]] = {}

TUMBLING = tumbling(10, grace=5)
HOPPING = hopping(10, 4, grace=3)
SLIDING = sliding(10, grace=7)
SESSION = session(5, grace=6)
WITHIN = join_within(10, grace=4)
AFTER = join_within(8, before=0, grace=2)


def build(name: str) -> Topology:
    """The topology of that name."""
    builder = StreamsBuilder(key="str", value="str")
    ALL[name](builder)
    return builder.build()


def topology(draw: Callable[[StreamsBuilder], None]) -> Callable[[StreamsBuilder], None]:
    ALL[draw.__name__] = draw
    return draw


def joined(left: str | None, right: str | None) -> str:
    return f"{_text(left)}+{_text(right)}"


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)


def out(table: KTable) -> None:
    table.to_stream().map_values(_shown).to("out")


def out_windows(table: KTable) -> None:
    def name(windowed: Windowed, value: Any) -> str:
        return f"{windowed.key}@{windowed.start_ms}/{windowed.end_ms}"

    table.to_stream(name).map_values(_shown).to("out")


def grouped(builder: StreamsBuilder) -> KGroupedStream:
    return builder.stream("in").group_by_key()


def has(letter: str) -> Callable[[Any, Any], bool]:
    return lambda key, value: value is not None and letter in value


def concat(one: str, other: str) -> str:
    return _text(one) + _text(other)


def add(key: Any, value: Any, result: str) -> str:
    return concat(result, value)


def plus(key: Any, value: Any, result: str) -> str:
    return f"{result}+{value}"


def minus(key: Any, value: Any, result: str) -> str:
    return f"{result}-{value}"


# --- record by record ----------------------------------------------------------------------------


@topology
def filter(builder: StreamsBuilder) -> None:  # noqa: A001
    builder.stream("in").filter(has("a")).to("out")


@topology
def filter_not(builder: StreamsBuilder) -> None:
    builder.stream("in").filter_not(has("a")).to("out")


@topology
def map(builder: StreamsBuilder) -> None:  # noqa: A001
    builder.stream("in").map(lambda key, value: (value, key)).to("out")


@topology
def map_values(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.map_values(lambda key, value: f"{_text(key)}={_text(value)}", with_key=True).to("out")


@topology
def flat_map(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.flat_map(lambda key, value: [(part, key) for part in value or ""]).to("out")


@topology
def flat_map_values(builder: StreamsBuilder) -> None:
    builder.stream("in").flat_map_values(lambda value: list(value or "")).to("out")


@topology
def select_key(builder: StreamsBuilder) -> None:
    builder.stream("in").select_key(lambda key, value: value).to("out")


@topology
def branch(builder: StreamsBuilder) -> None:
    split = builder.stream("in").split()
    branches = split.branch(has("a"), name="a").branch(has("b"), name="b").default_branch()
    branches["a"].to("out-a")
    branches["b"].to("out-b")
    branches["0"].to("out")


@topology
def merge(builder: StreamsBuilder) -> None:
    right = builder.stream("right").map_values(lambda value: f"{_text(value)}!")
    builder.stream("left").merge(right).to("out")


@topology
def repartition(builder: StreamsBuilder) -> None:
    builder.stream("in").select_key(lambda key, value: value).repartition().to("out")


# --- aggregates ----------------------------------------------------------------------------------


@topology
def count(builder: StreamsBuilder) -> None:
    out(grouped(builder).count())


@topology
def count_regrouped(builder: StreamsBuilder) -> None:
    out(builder.stream("in").group_by(lambda key, value: value).count())


@topology
def reduce(builder: StreamsBuilder) -> None:
    out(grouped(builder).reduce(concat))


@topology
def aggregate(builder: StreamsBuilder) -> None:
    out(grouped(builder).aggregate(str, add))


@topology
def aggregate_to_nothing(builder: StreamsBuilder) -> None:
    def step(key: str, value: str, result: str) -> str | None:
        return None if value == "c" else result + value

    out(grouped(builder).aggregate(str, step))


def _cogrouped(builder: StreamsBuilder) -> Any:
    left = builder.stream("left").group_by_key()
    right = builder.stream("right").group_by_key()

    def in_front(key: str, value: str, result: str) -> str:
        return concat(value, result)

    return left.cogroup(add).cogroup(right, in_front)


@topology
def cogroup(builder: StreamsBuilder) -> None:
    out(_cogrouped(builder).aggregate(lambda: "|"))


@topology
def cogroup_windowed(builder: StreamsBuilder) -> None:
    out_windows(_cogrouped(builder).windowed_by(TUMBLING).aggregate(lambda: "|"))


# --- windows -------------------------------------------------------------------------------------


@topology
def tumbling_count(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(TUMBLING).count())


@topology
def tumbling_reduce(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(TUMBLING).reduce(concat))


@topology
def tumbling_close(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(TUMBLING, emit="close").count())


@topology
def hopping_(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(HOPPING).aggregate(str, add))


@topology
def hopping_close(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(HOPPING, emit="close").aggregate(str, add))


@topology
def sliding_(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(SLIDING).aggregate(str, add))


@topology
def sliding_close(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(SLIDING, emit="close").aggregate(str, add))


@topology
def session_(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SESSION)
    out_windows(windowed.aggregate(str, add, merger=lambda key, one, other: one + other))


@topology
def session_count(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(SESSION).count())


@topology
def session_reduce(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(SESSION).reduce(concat))


@topology
def session_close(builder: StreamsBuilder) -> None:
    out_windows(grouped(builder).windowed_by(SESSION, emit="close").count())


@topology
def suppress_tumbling(builder: StreamsBuilder) -> None:
    counted = grouped(builder).windowed_by(TUMBLING).count()
    out_windows(counted.suppress(until_window_closes()))


@topology
def suppress_session(builder: StreamsBuilder) -> None:
    counted = grouped(builder).windowed_by(SESSION).count()
    out_windows(counted.suppress(until_window_closes()))


@topology
def suppress_time(builder: StreamsBuilder) -> None:
    out(grouped(builder).reduce(concat).suppress(until_time_limit(8)))


@topology
def suppress_records(builder: StreamsBuilder) -> None:
    out(grouped(builder).count().suppress(until_time_limit(100, records_max=2)))


@topology
def windowed_regrouped(builder: StreamsBuilder) -> None:
    counted = grouped(builder).windowed_by(TUMBLING).count()
    regrouped = counted.group_by(lambda key, value: (key.key, str(value)))
    out(regrouped.aggregate(str, plus, minus))


# --- tables --------------------------------------------------------------------------------------


@topology
def table(builder: StreamsBuilder) -> None:
    out(builder.table("in"))


@topology
def table_kept(builder: StreamsBuilder) -> None:
    out(builder.table("in", store="kept"))


@topology
def table_filter(builder: StreamsBuilder) -> None:
    out(builder.table("in").filter(has("a")))


@topology
def table_filter_kept(builder: StreamsBuilder) -> None:
    out(builder.table("in", store="kept").filter_not(has("a")))


@topology
def table_filter_stored(builder: StreamsBuilder) -> None:
    out(builder.table("in").filter(has("a"), store="stored"))


@topology
def table_map_values(builder: StreamsBuilder) -> None:
    out(builder.table("in").map_values(lambda value: value + "!"))


@topology
def to_table(builder: StreamsBuilder) -> None:
    out(builder.stream("in").select_key(lambda key, value: value or key).to_table())


@topology
def table_count(builder: StreamsBuilder) -> None:
    out(builder.table("in").group_by(lambda key, value: (value, key)).count())


@topology
def table_reduce(builder: StreamsBuilder) -> None:
    rows = builder.table("in").group_by(lambda key, value: (value[0], value))
    out(rows.reduce(lambda result, value: f"{result}+{value}", lambda r, value: f"{r}-{value}"))


@topology
def table_aggregate(builder: StreamsBuilder) -> None:
    rows = builder.table("in").group_by(lambda key, value: (value[0], key))
    out(rows.aggregate(str, plus, minus))


@topology
def table_filter_count(builder: StreamsBuilder) -> None:
    rows = builder.table("in").filter(lambda key, value: "c" not in value)
    doubled = rows.map_values(lambda value: value + value)
    out(doubled.group_by(lambda key, value: (value, key)).count())


@topology
def count_of_counts(builder: StreamsBuilder) -> None:
    out(grouped(builder).count().group_by(lambda key, value: (str(value), key)).count())


# --- joins of streams ----------------------------------------------------------------------------


def _streams(builder: StreamsBuilder) -> Any:
    return builder.stream("left"), builder.stream("right")


@topology
def stream_join(builder: StreamsBuilder) -> None:
    left, right = _streams(builder)
    left.join(right, joined, within=WITHIN).to("out")


@topology
def stream_left_join(builder: StreamsBuilder) -> None:
    left, right = _streams(builder)
    left.left_join(right, joined, within=WITHIN).to("out")


@topology
def stream_outer_join(builder: StreamsBuilder) -> None:
    left, right = _streams(builder)
    left.outer_join(right, joined, within=WITHIN).to("out")


@topology
def stream_outer_join_after(builder: StreamsBuilder) -> None:
    left, right = _streams(builder)
    left.outer_join(right, joined, within=AFTER).to("out")


@topology
def stream_join_after(builder: StreamsBuilder) -> None:
    left, right = _streams(builder)
    left.join(right, joined, within=AFTER).to("out")


@topology
def stream_join_rekeyed(builder: StreamsBuilder) -> None:
    left, right = (side.select_key(lambda key, value: value) for side in _streams(builder))
    left.join(right, joined, within=WITHIN).to("out")


@topology
def stream_left_join_rekeyed(builder: StreamsBuilder) -> None:
    left, right = _streams(builder)
    rekeyed = left.select_key(lambda key, value: value)
    rekeyed.left_join(right, joined, within=WITHIN).to("out")


@topology
def stream_table_join(builder: StreamsBuilder) -> None:
    builder.stream("left").join(builder.table("right"), joined).to("out")


@topology
def stream_table_left_join(builder: StreamsBuilder) -> None:
    builder.stream("left").left_join(builder.table("right"), joined).to("out")


@topology
def stream_filtered_table_join(builder: StreamsBuilder) -> None:
    rows = builder.table("right").filter(has("a")).map_values(lambda value: value + "!")
    builder.stream("left").join(rows, joined).to("out")


@topology
def stream_global_join(builder: StreamsBuilder) -> None:
    rows = builder.global_table("right")
    builder.stream("left").join(rows, joined, on=lambda key, value: value).to("out")


@topology
def stream_global_left_join(builder: StreamsBuilder) -> None:
    rows = builder.global_table("right")
    builder.stream("left").left_join(rows, joined, on=lambda key, value: value).to("out")


# --- joins of tables -----------------------------------------------------------------------------


@topology
def table_join(builder: StreamsBuilder) -> None:
    out(builder.table("left").join(builder.table("right"), joined))


@topology
def table_left_join(builder: StreamsBuilder) -> None:
    out(builder.table("left").left_join(builder.table("right"), joined))


@topology
def table_outer_join(builder: StreamsBuilder) -> None:
    out(builder.table("left").outer_join(builder.table("right"), joined))


@topology
def table_join_stored(builder: StreamsBuilder) -> None:
    out(builder.table("left").join(builder.table("right"), joined, store="joined"))


@topology
def table_join_filtered(builder: StreamsBuilder) -> None:
    left, right = builder.table("left"), builder.table("right").filter(has("a"))
    out(left.left_join(right, joined).filter(lambda key, value: "c" not in value))


@topology
def table_join_count(builder: StreamsBuilder) -> None:
    both = builder.table("left").outer_join(builder.table("right"), joined)
    out(both.group_by(lambda key, value: (value, key)).count())


@topology
def table_left_join_count(builder: StreamsBuilder) -> None:
    both = builder.table("left").left_join(builder.table("right"), joined)
    out(both.group_by(lambda key, value: (value, key)).count())


@topology
def table_join_twice(builder: StreamsBuilder) -> None:
    right, left = builder.table("right"), builder.table("left")
    once = left.left_join(right, joined)
    out(once.outer_join(right.map_values(lambda value: value + "!"), joined))


@topology
def count_join_table(builder: StreamsBuilder) -> None:
    counted = builder.stream("left").group_by_key().count().map_values(str)
    out(counted.left_join(builder.table("right"), joined))


@topology
def windowed_join(builder: StreamsBuilder) -> None:
    left, right = (side.group_by_key().windowed_by(TUMBLING).count() for side in _streams(builder))
    out_windows(left.outer_join(right, joined))


@topology
def table_self_join(builder: StreamsBuilder) -> None:
    rows = builder.table("in")
    out(rows.join(rows, joined))


def _first_letter(value: str) -> str:
    return value[0]


def _first_letter_but_c(value: str) -> str | None:
    return None if value.startswith("c") else value[0]


@topology
def foreign_join(builder: StreamsBuilder) -> None:
    out(builder.table("left").join(builder.table("right"), joined, on=_first_letter))


@topology
def foreign_left_join(builder: StreamsBuilder) -> None:
    out(builder.table("left").left_join(builder.table("right"), joined, on=_first_letter))


@topology
def foreign_join_null_keys(builder: StreamsBuilder) -> None:
    out(builder.table("left").join(builder.table("right"), joined, on=_first_letter_but_c))


@topology
def foreign_left_join_null_keys(builder: StreamsBuilder) -> None:
    out(builder.table("left").left_join(builder.table("right"), joined, on=_first_letter_but_c))


@topology
def suppressed_join(builder: StreamsBuilder) -> None:
    left = builder.table("left").suppress(until_time_limit(8))
    out(left.left_join(builder.table("right"), joined))


# --- processors ----------------------------------------------------------------------------------


class Timed:
    """Keeps what it sees and tells all of it now and then."""

    def init(self, context: Any) -> None:
        self.context = context
        self.store = context.store("seen")
        context.schedule(10, "stream-time", lambda now_ms: self.tell("stream", now_ms))
        context.schedule(20, "wall-clock", lambda now_ms: self.tell("wall", now_ms))

    def tell(self, kind: str, now_ms: int) -> None:
        rows = "".join(f"{key}={value};" for key, value in self.store.all())
        self.context.forward(Record(kind, rows, now_ms))

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.store.put(record.key, record.value)
            self.context.forward(record.with_value(f"{_text(record.value)}'"))


@topology
def process(builder: StreamsBuilder) -> None:
    builder.add_store(key_value_store("seen", value="str"))
    builder.stream("in").process(Timed, stores=["seen"]).to("out")


for spelled in ("hopping", "sliding", "session"):  # the functions of these names are imported
    ALL[spelled] = ALL.pop(f"{spelled}_")
