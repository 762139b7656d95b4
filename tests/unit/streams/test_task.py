"""Tasks: which record comes next, timers, headers, partitions, failures and changelogs."""

from typing import Any

import pytest

from ottla.clients.partitioner import partition_for_key
from ottla.streams import (
    BufferOverflow,
    DropReason,
    KStream,
    ProcessingFailed,
    ProcessorContext,
    Record,
    StreamsBuilder,
    TopologyError,
    TopologyTestDriver,
    Windowed,
    col,
    key_value_store,
    session,
    tumbling,
    until_window_closes,
    window_store,
)


def values(driver: TopologyTestDriver, topic: str = "out") -> list[Any]:
    return [record.value for record in driver.read(topic)]


# --- order ---------------------------------------------------------------------------------------


def test_the_record_with_the_lowest_time_of_all_partitions_heads_comes_next() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("a").merge(builder.stream("b")).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe_batch(
        [("a", "k", "a5", 5), ("a", "k", "a1", 1), ("b", "k", "b2", 2), ("b", "k", "b5", 5)]
    )
    # a1 is behind a5 in its partition; at the same time the topic drawn first comes first
    assert values(driver) == ["b2", "a5", "a1", "b5"]


def test_tasks_of_different_partitions_have_stream_times_of_their_own() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").group_by_key().windowed_by(tumbling(10)).count().to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), partitions=2)
    first, second = (
        next(name for name in "abcdefgh" if partition_for_key(name.encode(), 2) == number)
        for number in (0, 1)
    )
    driver.pipe("in", first, "x", 100)
    driver.pipe("in", second, "x", 5)
    assert len(driver.read("out")) == 2
    driver.pipe("in", first, "x", 5)
    assert driver.dropped() == {DropReason.LATE: 1}


def test_a_windowed_key_is_written_where_its_key_belongs() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").group_by_key().windowed_by(tumbling(10)).count().to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), partitions=3)
    for name in "abcdefgh":
        driver.pipe("in", name, "x", 42)
    for number, records in enumerate(driver.partition_of("out")):
        for record in records:
            assert record.key is not None
            assert partition_for_key(record.key[:1], 3) == number


def test_foreign_keys_are_joined_across_partitions() -> None:
    builder = StreamsBuilder(value="str")
    orders, people = builder.table("orders"), builder.table("people")
    joined = orders.join(people, lambda order, name: f"{order}:{name}", on=lambda order: order[0])
    joined.to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), partitions={"orders": 3, "people": 4})
    for number in range(20):
        driver.pipe("orders", f"order-{number}", "ab"[number % 2], number)
    driver.pipe_all("people", [("a", "Ada", 50), ("b", "Bo", 51)])
    rows = {record.key: record.value for record in driver.read("out")}
    assert rows == {f"order-{n}": ("a:Ada", "b:Bo")[n % 2] for n in range(20)}


def test_an_answer_for_a_row_that_has_changed_meanwhile_is_dropped() -> None:
    builder = StreamsBuilder(value="str")
    orders, people = builder.table("orders"), builder.table("people")
    joined = orders.join(people, lambda order, name: f"{order}:{name}", on=lambda order: order[0])
    joined.to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe_all("people", [("a", "Ada", 1), ("b", "Bo", 2)])
    driver.pipe_batch([("orders", "1", "a", 3), ("orders", "1", "b", 4)])
    assert values(driver) == ["b:Bo"]
    assert driver.dropped() == {DropReason.OUTDATED_ANSWER: 1}


def test_a_row_that_points_elsewhere_is_not_told_of_its_old_partner() -> None:
    builder = StreamsBuilder(value="str")
    orders, people = builder.table("orders"), builder.table("people")
    joined = orders.join(people, lambda order, name: f"{order}:{name}", on=lambda order: order[0])
    joined.to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe_all("people", [("a", "Ada", 1), ("b", "Bo", 2)])
    driver.pipe_all("orders", [("1", "a", 3), ("1", "b", 4)])
    driver.pipe("people", "a", "Anna", 5)
    assert values(driver) == ["a:Ada", "b:Bo"]
    assert driver.dropped() == {}


def test_a_partitioner_and_a_topic_can_be_chosen_for_each_record() -> None:
    builder = StreamsBuilder(value="str")
    stream = builder.stream("in")
    stream.to("out", partitioner=lambda key, value, count: count - 1)
    stream.to(lambda key, value: f"to-{value}")
    driver = TopologyTestDriver(builder.build(), partitions=3)
    driver.pipe_all("in", [("k", "a", 0), ("l", "b", 0)])
    assert [len(log) for log in driver.partition_of("out")] == [0, 0, 2]
    assert values(driver, "to-b") == ["b"]


# --- processors ----------------------------------------------------------------------------------


class Deduplicate:
    """Lets the first record of a key through, and tells at which offset it was."""

    def init(self, context: ProcessorContext) -> None:
        self.context, self.seen = context, context.store("seen")

    def process(self, record: Record) -> None:
        if self.seen.get(record.key) is None:
            self.seen.put(record.key, 1)
            offset = str(self.context.offset).encode()
            self.context.forward(record.with_headers((*record.headers, ("offset", offset))))


def test_a_processor_sees_and_sets_headers() -> None:
    builder = StreamsBuilder(value="str")
    builder.add_store(key_value_store("seen", value="int"))
    builder.stream("in").process(Deduplicate, stores=["seen"], value="str").to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", "1", headers=(("trace", b"x"),))
    driver.pipe("in", "a", "2")
    driver.restart()
    driver.pipe("in", "a", "3")
    assert driver.read("out") == [Record("a", "1", 0, (("trace", b"x"), ("offset", b"0")))]
    assert list(driver.store("seen").all()) == [("a", 1)]


class Ticker:
    """Tells the time now and then."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(20, "wall-clock", self.tell)

    def tell(self, now_ms: int) -> None:
        self.context.forward(Record("now", str(now_ms), now_ms))

    def process(self, record: Record) -> None:
        pass


@pytest.mark.parametrize("restarts", [False, True])
def test_a_wall_clock_timer_keeps_its_time_when_the_task_is_made_anew(restarts: bool) -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").process(Ticker).to("out")
    driver = TopologyTestDriver(builder.build(), wall_clock_ms=1000)
    for step_ms in (19, 1, 39, 1):
        driver.advance_wall_clock(step_ms)
        if restarts:
            driver.restart()
    # the one at 1040 was missed and made up for; the next is due in the old rhythm
    assert values(driver) == ["1020", "1059", "1060"]


def test_a_window_store_forgets_after_its_retention() -> None:
    def remember(record: Record, context: ProcessorContext) -> None:
        context.store("windows").put(record.key, record.timestamp_ms, record.value)

    builder = StreamsBuilder(value="str")
    builder.add_store(window_store("windows", 10, retention=20, value="str"))
    builder.stream("in").process(remember, stores=["windows"])
    driver = TopologyTestDriver(builder.build())
    driver.pipe_all("in", [("k", "a", 0), ("k", "b", 10), ("k", "c", 20)])
    store = driver.store("windows")
    assert [(start, value) for start, value, _ in store.fetch("k")] == [(10, "b"), (20, "c")]
    assert [windowed for windowed, _, _ in store.fetch_all()] == [
        Windowed("k", 10, 20),
        Windowed("k", 20, 30),
    ]


def test_a_processor_of_values_must_keep_the_key() -> None:
    def rename(record: Record, context: ProcessorContext) -> None:
        context.forward(record.with_key("other"))

    builder = StreamsBuilder(value="str")
    builder.stream("in").process_values(rename).to("out")
    with pytest.raises(TopologyError, match="must not change the key"):
        TopologyTestDriver(builder.build()).pipe("in", "k", "v")


def test_a_processor_may_only_use_the_stores_it_was_given() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").process(lambda record, context: context.store("none"))
    with pytest.raises(TopologyError, match="was not given the store 'none'"):
        TopologyTestDriver(builder.build()).pipe("in", "k", "v")


# --- windows and state ---------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [tumbling(10, grace=5), session(5, grace=5)])
def test_no_final_result_is_lost_when_time_leaps(windows: Any) -> None:
    builder = StreamsBuilder(value="str")
    counted = builder.stream("in").group_by_key().windowed_by(windows, emit="close").count()
    counted.to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe_all("in", [("k", "a", 1), ("k", "b", 4), ("l", "c", 1_000_000)])
    assert values(driver) == [2]


def test_a_suppression_stops_rather_than_tell_too_early() -> None:
    builder = StreamsBuilder(value="str")
    counted = builder.stream("in").group_by_key().windowed_by(tumbling(10)).count()
    counted.suppress(until_window_closes(records_max=1)).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "a", "x", 1)
    with pytest.raises(BufferOverflow, match="2 records"):
        driver.pipe("in", "b", "x", 1)


def test_state_does_not_grow_with_windows_that_are_gone() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").group_by_key().windowed_by(tumbling(10)).count(store="counts")
    driver = TopologyTestDriver(builder.build())
    for number in range(200):
        driver.pipe("in", "k", "x", number * 10)
    assert len(list(driver.store("counts").fetch_all())) == 1
    assert len(driver._stores["counts", 0]) == 2  # an entry, and where it is found by time


def test_an_aggregator_may_change_its_result_in_place() -> None:
    def add(key: str, value: str, result: list[str]) -> list[str]:
        result.append(value)
        return result

    builder = StreamsBuilder(value="str")
    lists = builder.stream("in").group_by_key().aggregate(list, add, value="json")
    moved = lists.group_by(lambda key, value: ("all", value), value="json")
    moved.aggregate(
        str, lambda k, v, r: f"{r}+{len(v)}", lambda k, v, r: f"{r}-{len(v)}", value="str"
    ).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe_all("in", [("k", "a", 0), ("k", "b", 0)])
    assert values(driver) == ["+1", "+1-1+2"]


def test_changelogs_have_the_keys_of_kafka_streams() -> None:
    builder = StreamsBuilder(value="str")
    grouped = builder.stream("in").group_by_key()
    grouped.count(store="counts")
    grouped.windowed_by(tumbling(10)).count(store="windows")
    grouped.windowed_by(session(10)).count(store="sessions")
    driver = TopologyTestDriver(builder.build(), app_id="app")
    driver.pipe("in", "k", "x", 15)
    one = bytes(7) + b"\x01"
    (table,) = driver.read_raw("app-counts-changelog")
    assert (table.key, table.value, table.timestamp_ms) == (b"k", one, 15)
    (window,) = driver.read_raw("app-windows-changelog")
    assert (window.key, window.value) == (b"k" + bytes(7) + b"\x0a" + bytes(4), one)
    (first,) = driver.read_raw("app-sessions-changelog")
    assert (first.key, first.value) == (b"k" + (bytes(7) + b"\x0f") * 2, one)


def test_tables_and_global_tables_can_be_read() -> None:
    builder = StreamsBuilder(value="str")
    builder.table("rows", store="rows")
    builder.global_table("everywhere", store="everywhere")
    driver = TopologyTestDriver(builder.build(), partitions=3)
    driver.pipe_all("rows", [("a", "1", 0), ("b", "2", 0), ("a", None, 0), ("c", "3", 0)])
    driver.pipe_all("everywhere", [("x", "1", 0), ("y", "2", 0)])
    assert driver.table("rows") == {"b": "2", "c": "3"}
    assert driver.table("everywhere") == {"x": "1", "y": "2"}
    with pytest.raises(TopologyError, match="there are rows, everywhere"):
        driver.table("none")


@pytest.mark.parametrize("kind", ["stream", "table"])
def test_an_unknown_expression_keeps_nothing_negated_or_not(kind: str) -> None:
    builder = StreamsBuilder()
    source = builder.stream("in") if kind == "stream" else builder.table("in", store="kept")
    for topic, kept in (
        ("out", source.filter(col("a") > 1)),
        ("not", source.filter_not(col("a") > 1)),
    ):
        (kept if isinstance(kept, KStream) else kept.to_stream()).to(topic)
    driver = TopologyTestDriver(builder.build())
    driver.pipe_all("in", [("k", {"a": 2}, 0), ("l", {"a": 0}, 0), ("m", {"b": 1}, 0)])
    assert (values(driver), values(driver, "not")) == ([{"a": 2}], [{"a": 0}])


# --- failures ------------------------------------------------------------------------------------


def test_a_function_that_fails_names_the_record() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").map_values(int, value="int").to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", "1")
    with pytest.raises(ProcessingFailed, match="record 1 of in-0 failed: ValueError"):
        driver.pipe("in", "k", "one")


def test_a_batch_that_fails_leaves_no_trace() -> None:
    def refuse(key: str, value: str) -> None:
        if value == "bad":
            raise ValueError(value)

    builder = StreamsBuilder(value="str")
    builder.stream("in").peek(refuse).group_by_key().count(store="counts").to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", "good")
    with pytest.raises(ProcessingFailed):
        driver.pipe_batch([("in", "k", "good", 0), ("in", "k", "bad", 0)])
    driver.restart()
    driver.pipe("in", "k", "good")
    assert values(driver) == [1, 2]


def test_a_value_its_sink_cannot_write_is_explained() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").map_values(int).to("out")
    with pytest.raises(ProcessingFailed, match="cannot write int 1 with the serde 'str'"):
        TopologyTestDriver(builder.build()).pipe("in", "k", "1")


def test_a_time_before_1970_is_refused() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in", timestamp_of=lambda key, value, timestamp_ms: int(value)).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.pipe("in", "k", "7")
    assert [record.timestamp_ms for record in driver.read("out")] == [7]
    with pytest.raises(ProcessingFailed, match="before 1970"):
        driver.pipe("in", "k", "-1")


def test_a_topic_the_topology_does_not_read_is_refused() -> None:
    builder = StreamsBuilder(value="str")
    builder.stream("in").to("out")
    with pytest.raises(TopologyError, match="it reads in"):
        TopologyTestDriver(builder.build()).pipe("other", "k", "v")
