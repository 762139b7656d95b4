"""Patterns of topic names in RE2's syntax, matched in time linear in the name.

A pattern comes from a client and is matched against every topic, so it must not be able to hold
the broker up: there is no backtracking, and the size of a compiled pattern is limited. Topic names
are made of 65 characters, so a set of characters is a set of those. A name must match as a whole.

Left out of RE2's syntax: word boundaries and Unicode classes; they are refused.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Final, NoReturn

from ottla.errors import ErrorCode, RequestFailed

PATTERN_LENGTH_MAX: Final = 2048
STATES_MAX: Final = 10_000
NESTING_MAX: Final = 50
REPEATS_MAX: Final = 1000
_STEPS_KEPT_MAX: Final = 10_000

_Chars = frozenset[str]
ALPHABET: Final[_Chars] = frozenset(string.ascii_letters + string.digits + "._-")
_DIGITS: Final[_Chars] = frozenset(string.digits)
_WORD: Final[_Chars] = frozenset(string.ascii_letters + string.digits + "_")
_ESCAPED_SETS: Final[dict[str, _Chars]] = {
    "d": _DIGITS,
    "D": ALPHABET - _DIGITS,
    "w": _WORD,
    "W": ALPHABET - _WORD,
    "s": frozenset(),
    "S": ALPHABET,
}
_NAMED_SETS: Final[dict[str, _Chars]] = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "digit": _DIGITS,
    "lower": frozenset(string.ascii_lowercase),
    "punct": frozenset("._-"),
    "upper": frozenset(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": frozenset(string.hexdigits),
}

_Build = Callable[[int], int]
"""Adds the states of one part of a pattern before a given state; returns where the part begins."""


class TopicPattern:
    """A compiled pattern. INVALID_REGULAR_EXPRESSION where it cannot be compiled."""

    __slots__ = ("_begin_only", "_end_only", "_start", "_states", "_steps")

    def __init__(self, text: str) -> None:
        states = _States()
        accepting = states.add(frozenset(), ())
        assert accepting == 0
        self._start = _Parser(text, states).parse()(accepting)
        self._states = states.moves
        self._begin_only = states.begin_only
        self._end_only = states.end_only
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        present = frozenset((self._start,))
        for place, char in enumerate(name):
            if place == 0:
                present = self._step(present, char, at_begin=True)
                continue
            key = (present, char)
            following = self._steps.get(key)
            if following is None:
                following = self._step(present, char, at_begin=False)
                if len(self._steps) >= _STEPS_KEPT_MAX:
                    self._steps.clear()
                self._steps[key] = following
            present = following
            if not present:
                return False
        return 0 in self._reached(present, at_begin=not name, at_end=True)

    def _step(self, present: frozenset[int], char: str, *, at_begin: bool) -> frozenset[int]:
        reached = self._reached(present, at_begin=at_begin, at_end=False)
        return frozenset(
            target
            for state in reached
            if char in self._states[state][0]
            for target in self._states[state][1]
        )

    def _reached(self, present: frozenset[int], *, at_begin: bool, at_end: bool) -> set[int]:
        """The states that can be entered without reading a character."""
        reached: set[int] = set()
        waiting = list(present)
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            if (state in self._begin_only and not at_begin) or (
                state in self._end_only and not at_end
            ):
                continue
            reached.add(state)
            chars, targets = self._states[state]
            if not chars:
                waiting.extend(targets)
        return reached


class _States:
    """The states of a pattern: which characters each reads, and where it goes.

    A state that reads no character is passed through.
    """

    __slots__ = ("begin_only", "end_only", "moves")

    def __init__(self) -> None:
        self.moves: list[tuple[_Chars, tuple[int, ...]]] = []
        self.begin_only: set[int] = set()
        self.end_only: set[int] = set()

    def add(self, chars: _Chars, targets: tuple[int, ...]) -> int:
        if len(self.moves) >= STATES_MAX:
            _refuse("it is too large")
        self.moves.append((chars, targets))
        return len(self.moves) - 1

    def read(self, chars: _Chars) -> _Build:
        if chars:
            return lambda following: self.add(chars, (following,))
        return lambda _following: self.add(chars, ())  # nothing a topic's name can have

    def sequence(self, parts: list[_Build]) -> _Build:
        def build(following: int) -> int:
            for part in reversed(parts):
                following = part(following)
            return following

        return build

    def either(self, parts: list[_Build]) -> _Build:
        if len(parts) == 1:
            return parts[0]
        return lambda following: self.add(frozenset(), tuple(part(following) for part in parts))

    def at_begin(self) -> _Build:
        return lambda following: self._only(self.begin_only, following)

    def at_end(self) -> _Build:
        return lambda following: self._only(self.end_only, following)

    def _only(self, where: set[int], following: int) -> int:
        state = self.add(frozenset(), (following,))
        where.add(state)
        return state

    def repeat(self, part: _Build, least: int, most: int | None) -> _Build:
        def build(following: int) -> int:
            if most is None:
                loop = self.add(frozenset(), ())
                self.moves[loop] = (frozenset(), (part(loop), following))
                following = loop
            else:
                end = following
                for _ in range(most - least):
                    following = self.add(frozenset(), (part(following), end))
            for _ in range(least):
                following = part(following)
            return following

        return build


class _Parser:
    """Reads the text of a pattern once, from left to right."""

    __slots__ = ("_depth", "_ignore_case", "_place", "_states", "_text")

    def __init__(self, text: str, states: _States) -> None:
        if len(text) > PATTERN_LENGTH_MAX:
            _refuse(f"it is longer than {PATTERN_LENGTH_MAX} characters")
        self._text = text
        self._states = states
        self._place = 0
        self._depth = 0
        self._ignore_case = False

    def parse(self) -> _Build:
        built = self._alternatives()
        if self._place < len(self._text):
            _refuse("a parenthesis closes that was not opened")
        return built

    def _next(self) -> str:
        return self._text[self._place] if self._place < len(self._text) else ""

    def _take(self) -> str:
        char = self._next()
        if not char:
            _refuse("it ends too early")
        self._place += 1
        return char

    def _skip(self, word: str) -> bool:
        if self._text.startswith(word, self._place):
            self._place += len(word)
            return True
        return False

    def _alternatives(self) -> _Build:
        parts = [self._sequence()]
        while self._skip("|"):
            parts.append(self._sequence())
        return self._states.either(parts)

    def _sequence(self) -> _Build:
        parts: list[_Build] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated())
        return self._states.sequence(parts)

    def _repeated(self) -> _Build:
        if self._next() in "*+?":
            _refuse("there is nothing to repeat")
        part = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return part
        self._skip("?")  # whether as much or as little as possible: the whole name must match
        if self._next() and (self._next() in "*+?" or self._peek_braces() is not None):
            _refuse("a repetition is repeated")
        return self._states.repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(mark):
                return bounds
        braces = self._peek_braces()
        if braces is None:
            return None
        inside, self._place = braces
        first, comma, last = inside.partition(",")
        least = int(first)
        most = least if not comma else int(last) if last else None
        if least > REPEATS_MAX or (most is not None and not least <= most <= REPEATS_MAX):
            _refuse(f"the repetition {{{inside}}} is out of bounds")
        return least, most

    def _peek_braces(self) -> tuple[str, int] | None:
        """The inside of a repetition in braces and where it ends; braces may also be just text."""
        if self._next() != "{":
            return None
        end = self._text.find("}", self._place)
        inside = self._text[self._place + 1 : end] if end >= 0 else ""
        first, _, last = inside.partition(",")
        is_bounds = first.isascii() and first.isdigit() and (not last or last.isdigit())
        return (inside, end + 1) if is_bounds and len(inside) < 10 else None

    def _atom(self) -> _Build:
        char = self._take()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._states.read(self._cased(self._class()))
            case ".":
                return self._states.read(ALPHABET)
            case "^":
                return self._states.at_begin()
            case "$":
                return self._states.at_end()
            case "\\":
                return self._escape()
            case _:
                return self._states.read(self._cased(frozenset(char) & ALPHABET))

    def _group(self) -> _Build:
        self._depth += 1
        if self._depth > NESTING_MAX:
            _refuse("its parentheses are nested too deeply")
        ignored_case = self._ignore_case
        if self._skip("?") and self._options():
            self._depth -= 1
            return self._states.sequence([])  # (?i): from here on
        built = self._alternatives()
        if not self._skip(")"):
            _refuse("a parenthesis is not closed")
        self._depth -= 1
        self._ignore_case = ignored_case
        return built

    def _options(self) -> bool:
        """What follows `(?`; True where it was options for what comes after the parenthesis."""
        following = self._text[self._place : self._place + 2]
        if self._skip("P<") or (following[:1] == "<" and following[1:].isalpha()):
            end = self._text.find(">", self._place)
            if end < 0:
                _refuse("a group's name does not end")
            self._place = end + 1
            return False
        is_on = True
        while True:
            option = self._take()
            if option == ":":
                return False
            if option == ")":
                return True
            if option == "-":
                is_on = False
            elif option == "i":
                self._ignore_case = is_on
            elif option not in "msU":
                _refuse(f"(?{option} is not supported")

    def _escape(self) -> _Build:
        char = self._take()
        if char == "A":
            return self._states.at_begin()
        if char == "z":
            return self._states.at_end()
        if char == "Q":
            end = self._text.find("\\E", self._place)
            end = len(self._text) if end < 0 else end
            quoted = self._text[self._place : end]
            self._place = min(end + 2, len(self._text))
            parts = [self._states.read(self._cased(frozenset(each) & ALPHABET)) for each in quoted]
            return self._states.sequence(parts)
        return self._states.read(self._cased(self._escaped(char)))

    def _escaped(self, char: str) -> _Chars:
        if char in _ESCAPED_SETS:
            return _ESCAPED_SETS[char]
        if char in "afnrtv":
            return frozenset()  # white space: no topic's name has it
        if char.isalnum():
            _refuse(f"\\{char} is not supported")
        return frozenset(char) & ALPHABET

    def _class(self) -> _Chars:
        is_negated = self._skip("^")
        chars: set[str] = set()
        is_first = True
        while is_first or self._next() != "]":
            is_first = False
            if self._skip("[:"):
                chars |= self._named_set()
                continue
            low = self._take()
            if low == "\\":
                low = self._take()
                if low.isalnum():
                    chars |= self._escaped(low)
                    continue
            high = low
            if self._next() == "-" and self._text[self._place + 1 :][:1] not in ("]", ""):
                self._place += 1
                high = self._take()
                if high == "\\":
                    high = self._take()
            if high < low:
                _refuse(f"the range {low}-{high} is the wrong way round")
            chars |= {each for each in ALPHABET if low <= each <= high}
        self._place += 1
        return ALPHABET - chars if is_negated else frozenset(chars)

    def _named_set(self) -> _Chars:
        end = self._text.find(":]", self._place)
        name = self._text[self._place : end] if end >= 0 else ""
        if name.removeprefix("^") not in _NAMED_SETS:
            _refuse(f"[:{name}:] is not supported")
        self._place = end + 2
        chars = _NAMED_SETS[name.removeprefix("^")]
        return ALPHABET - chars if name.startswith("^") else chars

    def _cased(self, chars: _Chars) -> _Chars:
        if not self._ignore_case:
            return chars
        return chars | {each.swapcase() for each in chars}


def _refuse(reason: str) -> NoReturn:
    raise RequestFailed(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"The pattern of topics cannot be used: {reason}."
    )
