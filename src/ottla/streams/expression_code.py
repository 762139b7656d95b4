"""Expressions as straight-line Python: one function for a whole expression, or for many at once.

Records come by the hundred thousand, so an expression is not walked for each of them: its code is
written once, a line an operation. What is known while it is written costs nothing when it runs: a
field of a value that was just made is its expression's result, a field that was read is not read
again, and what cannot be None is not asked whether it is.

Invariants:
1. Operations happen in the order of the expression, left before right, and the right side of `and`
   and `or` only where the left does not decide: the same errors come from the same records.
2. A name holds a value in the block that set it and in blocks inside of that one: `Scope` is copied
   for each block, so that nothing learned inside is used outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from ottla.streams.expressions import (
    CASTS,
    Call,
    Expression,
    Field,
    Fields,
    Literal,
    Node,
    Whole,
    divide,
    remainder,
    text,
)

T = TypeVar("T")
Evaluate = Callable[[Any, Any], Any]
"""A function of key and value."""
DEPTH_MAX: Final = 40
"""Of blocks in blocks; Python takes a hundred."""
_FUNCTIONS_KEPT: Final = 1_024
_INDENT: Final = "    "
_INFIX: Final = ("+", "-", "*", "==", "!=", "<", "<=", ">", ">=")
_GIVING_TEXT: Final = ("lower", "upper", "concat", "cast str")
_PLAIN: Final = frozenset((str, int, float, bool, list, bytes, tuple, type(None)))


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A value some name holds, or a constant."""

    text: str
    may_be_none: bool = True
    is_text: bool = False
    """A str, unless it is None."""


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A new value of named fields, which becomes a dict only where somebody needs the whole."""

    fields: Mapping[str, Part]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An object with an attribute for each field that is read of it; the whole is not there."""

    text: str
    attributes: dict[str, str] = field(default_factory=dict)
    """By the names of fields; grows while code is written."""


class NeedsWhole(Exception):
    """The code cannot do with the fields of a row."""


Part = Name | Made | Row
NOTHING: Final = Name("None")


@dataclass(slots=True)
class Scope:
    """What is known at one place of the code: which values are the key and the value there."""

    key: Part
    value: Part
    read: dict[tuple[str, str], Name] = field(default_factory=dict)
    """Fields that were read: by the name they were read from, and theirs."""
    whole: dict[int, Name] = field(default_factory=dict)
    """Made values that became dicts, by identity."""

    def inside(self, *, key: Part | None = None, value: Part | None = None) -> Scope:
        """For a block, or for records with another key or value."""
        return Scope(
            self.key if key is None else key,
            self.value if value is None else value,
            dict(self.read),
            dict(self.whole),
        )


class Code:
    """A function while it is written. Knows nothing of records."""

    __slots__ = ("_counter", "_depth", "_lines", "names")

    def __init__(self, depth: int) -> None:
        self._lines: list[str] = []
        self._depth = depth
        self._counter = 0
        self.names: dict[str, Any] = {
            "field_of": field_of,
            "remainder": remainder,
            "text_of": text,
            "lower": str.lower,
            "upper": str.upper,
        }

    def line(self, text: str) -> None:
        self._lines.append(_INDENT * self._depth + text)

    def set(self, formula: str, *, may_be_none: bool = True) -> Name:
        """A new name for what a formula gives."""
        name = self.new_name()
        self.line(f"{name} = {formula}")
        return Name(name, may_be_none)

    def new_name(self) -> str:
        self._counter += 1
        return f"t{self._counter}"

    def constant(self, value: Any) -> str:
        """A name for an object that is there before the code runs."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines below a line that ends in a colon."""
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def mentions(self, name: str) -> bool:
        """Whether any line may use a name: some that do not are taken to do."""
        return any(re.search(rf"\b{name}\b", line) for line in self._lines)

    @property
    def is_deep(self) -> bool:
        return self._depth > DEPTH_MAX

    def function(self, head: list[str], tail: list[str], name: str) -> Any:
        """What `name` is after the code ran between two other pieces."""
        source = "\n".join([*head, *self._lines, *tail, ""])
        exec(compile(source, "<expressions>", "exec"), self.names)
        return self.names[name]


def evaluator(expression: Expression, *, negated: bool = False) -> Evaluate:
    """The expression as a function of key and value; the same one for the same object."""
    return _evaluator(Same(expression.node), negated)


def maybe_negated(node: Node, negated: bool) -> Node:
    return Call("not", (node,)) if negated else node


@dataclass(frozen=True, slots=True, eq=False)
class Same(Generic[T]):
    """An object by identity, for caches: 1 and True are equal, and yet different expressions."""

    held: T

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.held is self.held


@lru_cache(maxsize=_FUNCTIONS_KEPT)
def _evaluator(same: Same[Node], negated: bool = False) -> Evaluate:
    code = Code(depth=1)
    scope = Scope(Name("key"), Name("value"))
    found = whole(code, scope, write(code, scope, maybe_negated(same.held, negated)))
    made: Evaluate = code.function(
        ["def evaluate(key, value):"], [f"    return {found.text}"], "evaluate"
    )
    return made


def field_of(found: Any, name: str) -> Any:
    """A field of a dict or of a struct; nothing else has fields, whatever attributes it has."""
    if isinstance(found, Mapping):
        return found.get(name)
    return None if type(found) in _PLAIN else getattr(found, name, None)


def whole(code: Code, scope: Scope, part: Part) -> Name:
    """A name that holds the part, a dict where it was made of fields."""
    if isinstance(part, Name):
        return part
    if isinstance(part, Row):
        raise NeedsWhole
    if id(part) not in scope.whole:
        texts = [f"{name!r}: {whole(code, scope, one).text}" for name, one in part.fields.items()]
        scope.whole[id(part)] = code.set("{" + ", ".join(texts) + "}", may_be_none=False)
    return scope.whole[id(part)]


def write(code: Code, scope: Scope, node: Node) -> Part:
    """Writes the lines of an expression; where its result is comes back."""
    match node:
        case Literal(None):
            return NOTHING
        case Literal(constant):
            is_text = isinstance(constant, str)
            return Name(code.constant(constant), may_be_none=False, is_text=is_text)
        case Whole(part):
            return scope.key if part == "key" else scope.value
        case Field(of, name):
            return _field(code, scope, write(code, scope, of), name)
        case Fields(named):
            return Made({name: write(code, scope, one) for name, one in named})
        case Call("and" | "or" as name, (left, right)):
            return _logical(code, scope, (left, right), decisive=name == "or")
        case Call(name, arguments):
            parts = [whole(code, scope, write(code, scope, one)) for one in arguments]
            return _call(code, name, parts)
    raise AssertionError(node)


def _field(code: Code, scope: Scope, of: Part, name: str) -> Part:
    if isinstance(of, Made):
        return of.fields.get(name, NOTHING)
    found = scope.read.get((of.text, name))
    if found is None and isinstance(of, Row):
        attribute = of.attributes.setdefault(name, f"f{len(of.attributes)}")
        found = scope.read[of.text, name] = code.set(f"{of.text}.{attribute}")
    elif found is None:
        of_dict, of_other = f"{of.text}.get({name!r})", f"field_of({of.text}, {name!r})"
        found = code.set(f"{of_dict} if type({of.text}) is dict else {of_other}")
        scope.read[of.text, name] = found
    return found


def _logical(code: Code, scope: Scope, sides: tuple[Node, Node], *, decisive: bool) -> Name:
    """`or` is decided by a true side, `and` by a false one, whatever the other is."""
    decided = "{0}" if decisive else "{0} is not None and not {0}"
    left = whole(code, scope, write(code, scope, sides[0]))
    result = code.new_name()
    with code.block(f"if {decided.format(left.text)}:"):
        code.line(f"{result} = {decisive}")
    with code.block("else:"):
        inner = scope.inside()
        right = whole(code, inner, _written_apart(code, inner, sides[1]))
        unknown = _any_none([left, right]) or "False"
        code.line(
            f"{result} = {decisive} if {decided.format(right.text)} else"
            f" None if {unknown} else {not decisive}"
        )
    return Name(result, left.may_be_none or right.may_be_none)


def _written_apart(code: Code, scope: Scope, node: Node) -> Part:
    """The expression's lines here, or where blocks are deep, a call of a function of its own."""
    if not code.is_deep:
        return write(code, scope, node)
    function = code.constant(_evaluator(Same(node)))
    key, value = whole(code, scope, scope.key), whole(code, scope, scope.value)
    return code.set(f"{function}({key.text}, {value.text})")


def _call(code: Code, name: str, parts: list[Name]) -> Name:
    if name == "is_null":
        return code.set(f"{parts[0].text} is None", may_be_none=False)
    unknown = _any_none(parts)
    formula = _formula(code, name, parts)
    found = code.set(f"None if {unknown} else {formula}" if unknown else formula)
    may_be_none = bool(unknown) or name in ("/", "%") or name.startswith("cast ")
    return Name(found.text, may_be_none, is_text=name in _GIVING_TEXT)


def _formula(code: Code, name: str, parts: list[Name]) -> str:
    """What an operation gives where nothing is missing."""
    texts = [part.text for part in parts]
    if name in _INFIX:
        return f"{texts[0]} {name} {texts[1]}"
    match name:
        case "/":
            return f"{code.constant(divide)}({texts[0]}, {texts[1]})"
        case "%":
            return f"remainder({texts[0]}, {texts[1]})"
        case "not":
            return f"not {texts[0]}"
        case "lower" | "upper":
            return f"{name}({texts[0]})"
        case "concat":
            return 'f"' + "".join(f"{{{_as_text(part)}}}" for part in parts) + '"'
    convert = code.constant(CASTS[name.removeprefix("cast ")])
    return f"{convert}({texts[0]})"


def _as_text(part: Name) -> str:
    if part.is_text:
        return part.text
    return f"{part.text} if type({part.text}) is str else text_of({part.text})"


def _any_none(parts: list[Name]) -> str:
    """The question whether any of them is None; empty where none can be."""
    return " or ".join(dict.fromkeys(f"{part.text} is None" for part in parts if part.may_be_none))
