"""Users' functions and expressions as functions of key and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams.expression_code import evaluator
from ottla.streams.expressions import Expression
from ottla.streams.operators import Aggregation, Count, Fold, Function, Reduce

OfKeyAndValue = Callable[[Any, Any], Any]


def of_key_and_value(function: Function) -> OfKeyAndValue:
    """A function given as one of key and value, or an expression."""
    return evaluator(function) if isinstance(function, Expression) else function


def predicate(function: Function, negated: bool) -> OfKeyAndValue:
    """Whether to keep a record. An expression that is unknown keeps nothing, negated or not."""
    if isinstance(function, Expression):
        return evaluator(function, negated=negated)
    return (lambda key, value: not function(key, value)) if negated else function


def of_value(function: Function, with_key: bool) -> OfKeyAndValue:
    """A function given as one of the value alone, unless `with_key`."""
    if isinstance(function, Expression):
        return evaluator(function)
    if with_key:
        return function
    return lambda _, value: function(value)


def joiner(function: Callable[..., Any], with_key: bool) -> Callable[[Any, Any, Any], Any]:
    """A joiner as a function of key, left and right."""
    return function if with_key else lambda _, left, right: function(left, right)


class Folding:
    """An aggregation as three functions: begin, add, and grow together."""

    __slots__ = ("add", "begin", "merge")

    def __init__(self, aggregation: Aggregation) -> None:
        self.begin: Callable[[], Any]
        self.add: Callable[[Any, Any, Any], Any]
        self.merge: Callable[[Any, Any, Any], Any]
        match aggregation:
            case Count():
                self.begin = int
                self.add = lambda _key, _value, result: result + 1
                self.merge = lambda _, one, other: one + other
            case Reduce(reducer):
                self.begin = _nothing
                self.add = lambda _, value, result: (
                    value if result is None else reducer(result, value)
                )
                self.merge = lambda _, one, other: other if one is None else reducer(one, other)
            case Fold(initializer, aggregator, merger):
                self.begin = initializer
                self.add = aggregator
                self.merge = merger or _no_merger


def _nothing() -> None:
    return None


def _no_merger(_key: Any, _one: Any, _other: Any) -> Any:
    raise AssertionError("drawn without a merger")
