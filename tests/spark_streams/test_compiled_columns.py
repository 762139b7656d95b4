"""Chains on whole columns write what a task of the engine writes, and leave the rest to it."""

import json
from contextlib import suppress
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.partitioner import partition_for_key
from ottla.streams import Expression, KStream, StreamsBuilder, Topology, col, fields, key
from ottla.streams.engine.records import InputRecord
from ottla.streams.engine.stores import MemoryStore
from ottla.streams.engine.task import Surroundings, Task
from ottla.streams.failures import ProcessingFailed
from ottla.streams.spark.compiled_columns import column_chains
from streams.random_expressions import expressions, records, texts

Written = dict[str, list[tuple[Any, ...]]]
"""By topic the keys, values, timestamps, headers and partitions."""
COUNTS = {"in": 3, "out": 3, "rest": 5}
HEADER = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
TYPES = {
    "key": pyarrow.binary(),
    "value": pyarrow.binary(),
    "timestamp": pyarrow.int64(),
    "offset": pyarrow.int64(),
    "headers": pyarrow.list_(HEADER),
}


def as_json(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


headers = st.none() | st.lists(
    st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=2
)
ODD = (
    b"",
    b"{",
    b"null",
    b"7",
    b'{"a": 1, "a": 2}',
    b'{"\\u0061": 3}',
    b'{"zz": 1e999, "a": 1}',
    b'{"zz": "\xff", "a": 1}',
    b'{"zz": ' + b"9" * 5000 + b', "a": 1}',
    b'{"zz": 1' + b"0" * 250 + b'e90, "a": 1}',
    b'{"zz": "x:1e999", "a": 1} ',
    b'{"a": 1} {"a": 2}',
    b'{"zz": ' + b"[" * 5000 + b"]" * 5000 + b', "a": 1}',
    b'{"zz": "\\udc00", "a": 1}',
    b'{"zz": "\\ud800\\u0041", "a": 1}',
    b'{"zz": "\x01", "a": 1}',
    b'{"zz": "\\q", "a": 1}',
    b'{"zz": 1.e5, "a": 1}',
    b'{"zz": 1E+400, "a": 1}',
    b'{"zz": [1,\n 7e00400], "a": 1}',
)
inputs = st.lists(
    st.builds(
        InputRecord,
        st.none() | texts.map(str.encode) | st.binary(max_size=3),
        records.map(as_json) | st.sampled_from(ODD),
        st.integers(0, 9) | st.sampled_from((-1, 10**12)),
        st.just(0),
        headers.map(lambda listed: tuple(listed or ())),
    ),
    min_size=1,
    max_size=6,
)


def by_task(topology: Topology, given: list[InputRecord]) -> Written:
    surroundings = Surroundings("app", lambda spec: MemoryStore(), COUNTS)
    task = Task(topology, topology.subtopologies[0], 0, surroundings)
    task.process({"in": given})
    found: Written = {}
    for one in task.take_outputs():
        place = None if one.key is None else partition_for_key(one.key, COUNTS[one.topic])
        listed = [{"key": name, "value": data} for name, data in one.headers] or None
        row = (one.key, one.value, one.timestamp_ms, listed, place)
        found.setdefault(one.topic, []).append(row)
    return found


def by_columns(topology: Topology, given: list[InputRecord]) -> Written:
    columns = [[one[number] for one in given] for number in range(5)]
    columns[4] = [
        [{"key": name, "value": data} for name, data in listed] or None for listed in columns[4]
    ]
    arrays = [
        pyarrow.array(column, kind) for column, kind in zip(columns, TYPES.values(), strict=True)
    ]
    read = pyarrow.RecordBatch.from_arrays(arrays, names=list(TYPES))
    (chain,) = column_chains(topology, topology.subtopologies[0], "app").values()
    return {
        topic: list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        for topic, rows in chain.outputs(read, COUNTS)
    }


def drawn(steps: list[tuple[str, Expression]], key: str, value: str) -> Topology:
    builder = StreamsBuilder(key=key, value=value)
    stream: KStream = builder.stream("in")
    for what, expression in steps:
        stream = getattr(stream, what)(expression)
    stream.filter(col("a") == 1).to("out")
    stream.map_values(fields(b=col("a"), who=col("who"))).to("rest")
    return builder.build()


steps = st.tuples(
    st.sampled_from(("filter", "filter_not", "map_values", "select_key")), expressions
)
simple = st.sampled_from(
    (
        ("filter", col("a") > 0),
        ("filter_not", (col("a") > 0) | (col("who") == "Ada")),
        ("map_values", fields(a=col("b"), who=col("who"))),
        ("map_values", fields(a=col("a"), who=fields(a=col("who")))),
        ("map_values", col("a").cast("str")),
        ("select_key", col("who").cast("str")),
        ("select_key", key()),
    )
)
serdes = st.sampled_from(("str", "bytes", "json"))


@given(
    st.lists(steps | simple, max_size=3), serdes, st.sampled_from(("json", "json", "str")), inputs
)
def test_columns_give_what_a_task_gives_or_fail(
    chain: list[tuple[str, Expression]], key: str, value: str, given: list[InputRecord]
) -> None:
    topology = drawn(chain, key, value)
    try:
        found = by_columns(topology, given)
    except Exception:
        return  # a task is asked; the next test sees to it that this is the exception
    assert found == by_task(topology, given)


plain = st.lists(
    st.builds(
        InputRecord,
        st.sampled_from((None, b"k", b"l")),
        st.sampled_from(
            (
                None,
                b'{"a": 1, "b": 2.50, "who": "Ada"}',
                b'{ "who": "\\u00df", "zz": [1, {"a": 5e-324}], "a": 12345678901234567890123 }',
                b'{"a": -0.0, "b": {"a": 1}, "id": "6e123-5e999"}',
                b"{}",
            )
        ),
        st.integers(0, 9),
        st.just(0),
        st.just(()),
    ),
    min_size=1,
    max_size=8,
)
harmless = st.sampled_from(
    (
        ("filter", col("a").is_not_null()),
        ("filter", (col("a") == 1) | col("b").is_not_null()),
        ("map_values", fields(a=col("b"), b=col("a"), who=key())),
        ("map_values", fields(a=fields(a=col("a")), who=col("who"))),
        ("select_key", col("who")),
    )
)


@given(st.lists(harmless, max_size=3), plain)
def test_columns_do_what_they_can(
    chain: list[tuple[str, Expression]], given: list[InputRecord]
) -> None:
    topology = drawn(chain, "str", "json")
    assert by_columns(topology, given) == by_task(topology, given)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:20].decode(errors="replace"))
def test_a_record_that_fails_in_a_task_fails_in_columns(odd: bytes) -> None:
    topology = drawn([("map_values", fields(a=col("a")))], "str", "json")
    given = [InputRecord(b"k", odd, 5)]
    with suppress(Exception):
        assert by_columns(topology, given) == by_task(topology, given)
        return
    with suppress(ProcessingFailed):
        by_task(topology, given)
        return
    with pytest.raises(Exception, match=r".*"):
        by_columns(topology, given)


def test_what_is_no_chain_is_left_to_tasks() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.flat_map_values(list).to("out")
    other = builder.stream("other")
    other.filter(col("a") > 1).to("twice")
    other.filter(col("a") > 2).to("twice")
    builder.stream("third").to(lambda key, value: "named")
    topology = builder.build()
    for part in topology.subtopologies:
        assert column_chains(topology, part, "app") == {}
