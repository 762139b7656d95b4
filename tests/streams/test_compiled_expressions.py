"""Compiled expressions, and chains of nodes made of them, give what a walk over them gives."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import (
    Expression,
    FunctionSerde,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    col,
    fields,
    lit,
)
from ottla.streams import key as key_of
from ottla.streams.engine.records import InputRecord
from ottla.streams.engine.stores import MemoryStore
from ottla.streams.engine.task import Surroundings, Task
from ottla.streams.expression_code import DEPTH_MAX, evaluator
from ottla.streams.failures import ProcessingFailed
from streams.expression_oracle import evaluate
from streams.random_expressions import expressions, objects, outcome, scalars

Step = tuple[str, Expression]
"""An operator, and what it is given."""
steps = st.tuples(
    st.sampled_from(("filter", "filter_not", "map_values", "select_key")), expressions
)


@given(expressions, scalars, objects)
def test_a_compiled_expression_gives_what_the_walk_gives(
    expression: Expression, key: Any, value: Any
) -> None:
    assert outcome(evaluator(expression), key, value) == outcome(evaluate, expression, key, value)
    expected = outcome(evaluate, ~expression, key, value)
    assert outcome(evaluator(expression, negated=True), key, value) == expected


@given(st.lists(steps, min_size=1, max_size=5), scalars, objects)
def test_a_chain_gives_what_its_steps_give_whether_expressions_or_functions(
    chain: list[Step], key: Any, value: Any
) -> None:
    expected = outcome(_walked, chain, key, value)
    assert outcome(_piped, chain, key, value) == expected
    as_functions = [
        ("filter", _function(~one)) if what == "filter_not" else (what, _function(one))
        for what, one in chain
    ]
    assert outcome(_piped, as_functions, key, value) == expected


def _function(expression: Expression) -> Callable[..., Any]:
    return lambda key, value: evaluate(expression, key, value)


def _walked(chain: list[Step], key: Any, value: Any) -> list[tuple[Any, Any]]:
    for what, expression in chain:
        found = evaluate(~expression if what == "filter_not" else expression, key, value)
        if what == "map_values":
            value = found
        elif what == "select_key":
            key = found
        elif not found:
            return []
    return [(key, value)]


def _piped(chain: list[tuple[str, Any]], key: Any, value: Any) -> list[tuple[Any, Any]]:
    """One record through the chain as a topology; what comes out at its end."""
    held: list[Any] = [key, value]
    by_number = FunctionSerde(
        lambda one: bytes([next(n for n, each in enumerate(held) if each is one)]),
        lambda data: held[data[0]],
    )
    builder = StreamsBuilder(key=by_number, value=by_number)
    stream = builder.stream("in")
    for what, function in chain:
        options = {"with_key": True} if what == "map_values" else {}
        stream = getattr(stream, what)(function, **options)
    seen: list[tuple[Any, Any]] = []
    stream.foreach(lambda key, value: seen.append((key, value)))
    task = a_task(builder.build())
    try:
        task.process({"in": [InputRecord(b"\0", b"\1", 0)]})
    except ProcessingFailed as failed:
        raise failed.cause from None
    return seen


def a_task(topology: Topology) -> Task:
    surroundings = Surroundings("app", lambda spec: MemoryStore())
    return Task(topology, topology.subtopologies[0], 0, surroundings)


def test_fields_that_are_no_fields_are_missing() -> None:
    assert [evaluator(col("lower"))(None, one) for one in ("text", ["x"], 5, b"")] == [None] * 4


@pytest.mark.parametrize("count", [DEPTH_MAX // 2, 3 * DEPTH_MAX, 200])
def test_conditions_and_chains_may_be_as_deep_as_one_likes(count: int) -> None:
    to_the_right: Expression = lit(True)
    for _ in range(count):
        to_the_right = (col("a") == 1) & to_the_right
    assert [evaluator(to_the_right)(None, {"a": a}) for a in (1, 2, None)] == [True, False, None]
    kept: list[tuple[str, Any]] = [("filter", col("a") == 1)] * count
    assert _piped(kept, "k", {"a": 1}) == [("k", {"a": 1})]
    assert _piped(kept, "k", {"a": 2}) == []


def test_the_right_side_is_not_looked_at_where_the_left_decides() -> None:
    fails = col("who") + 1 > 0
    assert evaluator((col("a") == 1) & fails)(None, {"a": 2, "who": "x"}) is False
    assert evaluator((col("a") == 1) | fails)(None, {"a": 1, "who": "x"}) is True
    with pytest.raises(TypeError):
        evaluator((col("a") == 1) & fails)(None, {"a": 1, "who": "x"})


def test_a_field_read_on_the_right_only_is_read_again_behind_it() -> None:
    expression = ((col("a") == 1) & (col("b") == 1)) | (col("b") == 2)
    assert [evaluator(expression)(None, {"a": a, "b": 2}) for a in (1, 0, None)] == [True] * 3


def test_what_was_read_in_one_branch_is_not_taken_for_known_in_another() -> None:
    builder = StreamsBuilder()
    made = builder.stream("in").map_values(fields(a=col("a"), b=col("b")))
    branches = (
        made.split()
        .branch((col("a") > 1) & (col("b") > 1), name="both")
        .branch(col("b") > 1, name="b")
        .default_branch()
    )
    for name in ("both", "b", "0"):
        branches[name].select_key(key_of()).to(f"out-{name}")
    made.filter(col("b") == 0).to("zero")
    driver = TopologyTestDriver(builder.build())
    for a, b in ((2, 2), (0, 2), (2, 0), (None, 3), (None, None)):
        driver.pipe("in", "k", {"a": a, "b": b})
    found = {
        topic: [(one.value["a"], one.value["b"]) for one in driver.read(topic)]
        for topic in ("out-both", "out-b", "out-0", "zero")
    }
    assert found == {
        "out-both": [(2, 2)],
        "out-b": [(0, 2), (None, 3)],
        "out-0": [(2, 0), (None, None)],
        "zero": [(2, 0)],
    }


def test_nodes_below_one_node_get_the_same_object() -> None:
    seen: list[Any] = []
    builder = StreamsBuilder()
    made = builder.stream("in").map_values(fields(a=col("a")))
    for _ in range(2):
        made.foreach(lambda key, value: seen.append(value))
    TopologyTestDriver(builder.build()).pipe("in", "k", {"a": 1, "b": 2})
    assert seen[0] == {"a": 1}
    assert seen[0] is seen[1]
