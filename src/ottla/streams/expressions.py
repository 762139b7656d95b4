"""A tiny language of expressions on values, as data.

An expression can be read, shown and compiled: `expression_code.py` writes the Python that runs.
Nothing is null-safe by accident: any operation on a missing value gives None, as in SQL; `and` and
`or` know three truth values; a division by zero gives None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ottla.streams.failures import TopologyError

_INFIX: Final = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or")


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
        if kind not in CASTS:
            raise TopologyError(f"cannot cast to {kind!r}; use {', '.join(CASTS)}")
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
        if len(texts) == 2 and self.name in _INFIX:
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


def divide(left: Any, right: Any) -> Any:
    return None if right == 0 else left / right


def remainder(left: Any, right: Any) -> Any:
    return None if right == 0 else left - right * int(left / right)  # the sign of the left, as SQL


def text(value: Any) -> str:
    """As `concat` and casts to "str" write a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode() if isinstance(value, bytes) else str(value)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return bool(value)


def _or_none(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError):
            return None

    return converted


CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": _or_none(int),
    "float": _or_none(float),
    "str": _or_none(text),
    "bool": _or_none(_truth),
}
"""What cannot be read as such becomes None."""


def checked_function(function: Any) -> Any:
    """Refuses what is neither a function nor an expression."""
    if isinstance(function, Expression) or callable(function):
        return function
    raise TopologyError(f"{function!r} is neither a function nor an expression")
