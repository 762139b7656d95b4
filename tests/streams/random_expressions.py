"""Any expression on any value: what hypothesis draws for the tests of compiled expressions."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from ottla.streams import Expression, concat, fields, key, lit, value

NAMES = ("a", "b", "who")


class Person(msgspec.Struct):
    """A value that is no dict."""

    who: str
    a: int | None = None


numbers = (
    st.integers(-3, 3) | st.integers() | st.sampled_from((0.0, -0.0, 1.5, 1e308, float("inf")))
)
texts = st.sampled_from(("", "Ada", "12", "1.5", "true", "ß İ", 'x\n"y"', "nan")) | st.text(
    max_size=4
)
scalars = st.none() | st.booleans() | numbers | texts
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
records = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=3) | json_values
objects = records | st.builds(Person, texts, st.none() | st.integers(-3, 3))


def _unary(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def applied(one: Expression, what: str) -> Expression:
        if what.startswith("cast "):
            return one.cast(what.removeprefix("cast "))
        if what.startswith("."):
            return one[what[1:]]
        made: Expression = ~one if what == "not" else getattr(one, what)()
        return made

    whats = ["not", "lower", "upper", "is_null", "is_not_null", *(f".{name}" for name in NAMES)]
    whats += [f"cast {kind}" for kind in ("int", "float", "str", "bool")]
    return st.builds(applied, inner, st.sampled_from(whats))


def _binary(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    whats = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or")
    return st.builds(
        lambda one, what, other: one._call(what, other), inner, st.sampled_from(whats), inner
    )


def _bigger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    named = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3)
    return (
        _unary(inner)
        | _binary(inner)
        | st.builds(lambda parts: concat(*parts), st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: fields(**parts), named)
    )


_leaves = (
    st.builds(lit, scalars)
    | st.builds(key)
    | st.builds(value)
    | st.builds(lambda name: value()[name], st.sampled_from(NAMES))
)
expressions = st.recursive(_leaves, _bigger, max_leaves=12)


def outcome(function: Any, *arguments: Any) -> tuple[str, str]:
    """What a call gives or raises, told exactly: 1, 1.0 and True are different here."""
    try:
        return "gives", repr(function(*arguments))
    except Exception as error:
        return type(error).__name__, str(error)
