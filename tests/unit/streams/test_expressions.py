"""Expressions: SQL's rules for missing values, and that they can be read."""

from dataclasses import dataclass
from typing import Any

import pytest

from ottla.streams import Expression, TopologyError, col, concat, fields, key, lit, value
from ottla.streams.expression_code import evaluator


def evaluate(expression: Expression, on: Any, of_key: Any = "k") -> Any:
    return evaluator(expression)(of_key, on)


@dataclass
class Order:
    amount: int
    who: str | None = None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("amount") * 2 > lit(10), True),
        (10 - col("amount"), 3),
        (col("amount") / 2, 3.5),
        (col("amount") / 0, None),
        (col("amount") % 4, 3),
        (-col("amount") % 4, -3),
        (-col("amount"), -7),
        (col("missing") + 1, None),
        (col("missing") == 1, None),
        (col("missing").is_null(), True),
        (col("amount").is_not_null(), True),
        (~(col("amount") == 7), False),
        (col("who").upper(), "ADA"),
        (concat(key(), "-", col("who").lower(), col("amount")), "k-ada7"),
        (concat("a", col("missing")), None),
        (col("amount").cast("str"), "7"),
        (col("who").cast("int"), None),
        (lit("true").cast("bool"), True),
        (col("inner")["deep"], 1),
        (value()["amount"], 7),
        (fields(who=col("who"), twice=col("amount") * 2), {"who": "Ada", "twice": 14}),
    ],
)
def test_an_expression_is_worth_what_sql_says(expression: Expression, expected: Any) -> None:
    on = {"amount": 7, "who": "Ada", "inner": {"deep": 1}}
    assert evaluate(expression, on) == expected


@pytest.mark.parametrize("unknown", [col("x") > 1])
def test_and_and_or_know_three_truth_values(unknown: Expression) -> None:
    yes, no = lit(1) == 1, lit(1) == 2
    results = [
        evaluate(one, {})
        for one in (unknown & no, no & unknown, unknown & yes, unknown | yes, unknown | no)
    ]
    assert results == [False, False, None, True, None]


def test_fields_of_structs_are_read_as_well() -> None:
    assert evaluate(col("amount") + 1, Order(7)) == 8
    assert evaluate(col("nothing"), Order(7)) is None
    assert evaluate(col("amount"), None) is None


def test_an_expression_reads_as_it_was_written() -> None:
    assert str(col("a") * 2 > 10) == "((a * 2) > 10)"
    assert str((col("a").is_null()) | ~(key() == "x")) == "(is_null(a) or not((key == 'x')))"


def test_an_expression_is_not_a_truth_value() -> None:
    with pytest.raises(TopologyError, match="use &"):
        bool(col("a") > 1)


def test_what_is_no_constant_is_refused() -> None:
    with pytest.raises(TopologyError, match="cannot stand in an expression"):
        col("a") + object()
    with pytest.raises(TopologyError, match="cannot cast"):
        col("a").cast("complex")
