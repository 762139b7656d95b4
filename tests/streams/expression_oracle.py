"""What an expression means, said a second time and plainly: it is walked for every record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ottla.streams.expressions import Call, Expression, Field, Fields, Literal, Node, Whole

OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: None if right == 0 else left / right,
    "%": lambda left, right: None if right == 0 else left - right * int(left / right),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "not": operator.not_,
    "lower": str.lower,
    "upper": str.upper,
    "concat": lambda *parts: "".join(_text(part) for part in parts),
    "cast int": lambda value: _read(int, value),
    "cast float": lambda value: _read(float, value),
    "cast str": lambda value: _read(_text, value),
    "cast bool": lambda value: _read(_truth, value),
}


def evaluate(expression: Expression, key: Any, value: Any) -> Any:
    return _evaluate(expression.node, key, value)


def _evaluate(node: Node, key: Any, value: Any) -> Any:
    match node:
        case Literal(constant):
            return constant
        case Whole(part):
            return key if part == "key" else value
        case Field(of, name):
            return _field(_evaluate(of, key, value), name)
        case Fields(named):
            return {name: _evaluate(one, key, value) for name, one in named}
        case Call("is_null", (of,)):
            return _evaluate(of, key, value) is None
        case Call("and" | "or" as name, sides):
            return _logical(name == "or", sides, key, value)
        case Call(name, arguments):
            found = [_evaluate(one, key, value) for one in arguments]
            return None if any(one is None for one in found) else OPERATIONS[name](*found)
    raise AssertionError(node)


def _logical(decisive: bool, sides: tuple[Node, ...], key: Any, value: Any) -> bool | None:
    found = []
    for side in sides:
        found.append(_evaluate(side, key, value))
        if found[-1] is not None and bool(found[-1]) is decisive:
            return decisive
    return None if None in found else not decisive


def _field(found: Any, name: str) -> Any:
    if isinstance(found, Mapping):
        return found.get(name)
    if isinstance(found, msgspec.Struct):
        return getattr(found, name, None)
    return None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode() if isinstance(value, bytes) else str(value)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return bool(value)


def _read(convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        return None
