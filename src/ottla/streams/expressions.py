"""A tiny language of expressions on values, as data.

An expression can be read: the engine evaluates it on Python objects, Spark can compile it to
columns. Nothing is null-safe by accident: any operation on a missing value gives None, as in SQL;
`and` and `or` know three truth values; a division by zero gives None.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.streams.failures import TopologyError

Evaluate = Callable[[Any, Any], Any]
"""A function of key and value."""


class Expression:
    """What `col`, `lit` and `key` begin; operators make bigger ones. It holds no truth itself."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)

    def __bool__(self) -> bool:
        raise TopologyError(
            "an expression is not true or false yet; use &, | and ~, not and, or, not"
        )

    def __hash__(self) -> int:
        return hash(self.node)

    def __reduce__(self) -> tuple[type, tuple[Node]]:
        return (Expression, (self.node,))

    def _call(self, name: str, *others: object) -> Expression:
        return Expression(Call(name, (self.node, *(_node(other) for other in others))))

    def __add__(self, other: object) -> Expression:
        return self._call("+", other)

    def __radd__(self, other: object) -> Expression:
        return lit(other)._call("+", self)

    def __sub__(self, other: object) -> Expression:
        return self._call("-", other)

    def __rsub__(self, other: object) -> Expression:
        return lit(other)._call("-", self)

    def __mul__(self, other: object) -> Expression:
        return self._call("*", other)

    def __rmul__(self, other: object) -> Expression:
        return lit(other)._call("*", self)

    def __truediv__(self, other: object) -> Expression:
        return self._call("/", other)

    def __rtruediv__(self, other: object) -> Expression:
        return lit(other)._call("/", self)

    def __mod__(self, other: object) -> Expression:
        return self._call("%", other)

    def __neg__(self) -> Expression:
        return lit(0)._call("-", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("!=", other)

    def __lt__(self, other: object) -> Expression:
        return self._call("<", other)

    def __le__(self, other: object) -> Expression:
        return self._call("<=", other)

    def __gt__(self, other: object) -> Expression:
        return self._call(">", other)

    def __ge__(self, other: object) -> Expression:
        return self._call(">=", other)

    def __and__(self, other: object) -> Expression:
        return self._call("and", other)

    def __rand__(self, other: object) -> Expression:
        return lit(other)._call("and", self)

    def __or__(self, other: object) -> Expression:
        return self._call("or", other)

    def __ror__(self, other: object) -> Expression:
        return lit(other)._call("or", self)

    def __invert__(self) -> Expression:
        return self._call("not")

    def __getitem__(self, name: str) -> Expression:
        return Expression(Field(self.node, name))

    def is_null(self) -> Expression:
        """True where nothing is there."""
        return self._call("is_null")

    def is_not_null(self) -> Expression:
        """True where something is there."""
        return ~self.is_null()

    def lower(self) -> Expression:
        """Text in lower case."""
        return self._call("lower")

    def upper(self) -> Expression:
        """Text in upper case."""
        return self._call("upper")

    def cast(self, kind: str) -> Expression:
        """As "int", "float", "str" or "bool"; what cannot be read as one becomes None."""
        if kind not in _CASTS:
            raise TopologyError(f"cannot cast to {kind!r}; use {', '.join(_CASTS)}")
        return self._call(f"cast {kind}")


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole "key" or the whole "value"."""

    part: str

    def __str__(self) -> str:
        return self.part


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a dict or a struct, None where it is missing."""

    of: Node
    name: str

    def __str__(self) -> str:
        return self.name if self.of == Whole("value") else f"{self.of}.{self.name}"


@dataclass(frozen=True, slots=True)
class Call:
    """A named operation on others."""

    name: str
    arguments: tuple[Node, ...]

    def __str__(self) -> str:
        texts = [str(argument) for argument in self.arguments]
        if len(texts) == 2 and self.name in _BINARY | {"and": None, "or": None}:
            return f"({texts[0]} {self.name} {texts[1]})"
        return f"{self.name}({', '.join(texts)})"


@dataclass(frozen=True, slots=True)
class Fields:
    """A new dict of named expressions."""

    fields: tuple[tuple[str, Node], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {node}" for name, node in self.fields) + "}"


Node = Literal | Whole | Field | Call | Fields


def col(name: str) -> Expression:
    """A field of the value."""
    return Expression(Field(Whole("value"), name))


def key() -> Expression:
    """The record's key."""
    return Expression(Whole("key"))


def value() -> Expression:
    """The record's whole value."""
    return Expression(Whole("value"))


def lit(constant: object) -> Expression:
    """A constant."""
    return Expression(_node(constant))


def concat(*parts: object) -> Expression:
    """Texts one after the other."""
    return Expression(Call("concat", tuple(_node(part) for part in parts)))


def fields(**named: object) -> Expression:
    """A new value with these fields."""
    return Expression(Fields(tuple((name, _node(one)) for name, one in named.items())))


def _node(of: object) -> Node:
    if isinstance(of, Expression):
        return of.node
    if of is None or isinstance(of, bool | int | float | str | bytes):
        return Literal(of)
    raise TopologyError(
        f"{of!r} cannot stand in an expression; give a number, text or an expression"
    )


def _divide(left: Any, right: Any) -> Any:
    return None if right == 0 else left / right


def _remainder(left: Any, right: Any) -> Any:
    return None if right == 0 else left - right * int(left / right)  # the sign of the left, as SQL


_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "not": operator.not_,
    "lower": str.lower,
    "upper": str.upper,
}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode() if isinstance(value, bytes) else str(value)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return bool(value)


_CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": int,
    "float": float,
    "str": _text,
    "bool": _truth,
}


def checked_function(function: Any) -> Any:
    """Refuses what is neither a function nor an expression."""
    if isinstance(function, Expression) or callable(function):
        return function
    raise TopologyError(f"{function!r} is neither a function nor an expression")


def evaluator(expression: Expression) -> Evaluate:
    """The expression as a function of key and value."""
    return _compiled(expression.node)


def _compiled(node: Node) -> Evaluate:
    match node:
        case Literal(constant):
            return lambda _key, _value: constant
        case Whole("key"):
            return lambda key, _: key
        case Whole():
            return lambda _, value: value
        case Field(of, name):
            return _field(of, name)
        case Fields(named):
            makers = [(name, _compiled(one)) for name, one in named]
            return lambda key, value: {name: make(key, value) for name, make in makers}
        case Call(name, arguments):
            return _call(name, [_compiled(argument) for argument in arguments])
    raise AssertionError(node)


def _field(of: Node, name: str) -> Evaluate:
    whole = _compiled(of)

    def field(key: Any, value: Any) -> Any:
        found = whole(key, value)
        if isinstance(found, Mapping):
            return found.get(name)
        return getattr(found, name, None)

    return field


def _call(name: str, parts: list[Evaluate]) -> Evaluate:
    if name in _BINARY:
        return _binary(_BINARY[name], *parts)
    if name in _UNARY:
        return _unary(_UNARY[name], parts[0])
    if name == "is_null":
        return lambda key, value: parts[0](key, value) is None
    if name in ("and", "or"):
        return _logical(parts[0], parts[1], decisive=name == "or")
    if name == "concat":
        return _concat(parts)
    return _cast(_CASTS[name.removeprefix("cast ")], parts[0])


def _binary(apply: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
    def binary(key: Any, value: Any) -> Any:
        one, other = left(key, value), right(key, value)
        return None if one is None or other is None else apply(one, other)

    return binary


def _unary(apply: Callable[[Any], Any], of: Evaluate) -> Evaluate:
    def unary(key: Any, value: Any) -> Any:
        found = of(key, value)
        return None if found is None else apply(found)

    return unary


def _logical(left: Evaluate, right: Evaluate, *, decisive: bool) -> Evaluate:
    """`or` is decided by a true side, `and` by a false one, whatever the other is."""

    def logical(key: Any, value: Any) -> bool | None:
        one = left(key, value)
        if one is not None and bool(one) is decisive:
            return decisive
        other = right(key, value)
        if other is not None and bool(other) is decisive:
            return decisive
        return None if one is None or other is None else not decisive

    return logical


def _concat(parts: list[Evaluate]) -> Evaluate:
    def joined(key: Any, value: Any) -> str | None:
        texts = [part(key, value) for part in parts]
        return None if None in texts else "".join(_text(text) for text in texts)

    return joined


def _cast(convert: Callable[[Any], Any], of: Evaluate) -> Evaluate:
    def cast(key: Any, value: Any) -> Any:
        found = of(key, value)
        if found is None:
            return None
        try:
            return convert(found)
        except (TypeError, ValueError):
            return None

    return cast
