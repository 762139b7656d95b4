"""What a declared setting is, and everything that follows from the declaration of one.

A settings class is a frozen dataclass whose fields are `name: type = declare(default, Setting(...),
doc)`. From that come parsing with an exact error, rendering as Kafka renders, bounds, help text and
documentation. Does not know which settings exist, nor where their texts come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Final, TypeVar, cast

from ottla.errors import ConfigError

T = TypeVar("T")

Value = bool | int | float | str | tuple[str, ...] | frozenset[str] | None
"""What a setting may hold."""

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
MS_PER_MINUTE: Final = 60_000
MS_PER_HOUR: Final = 3_600_000
DOUBLE_MAX: Final = 1.7976931348623157e308

_SETTING: Final = "setting"
_DOC: Final = "doc"


class Kind(IntEnum):
    """The type of a setting, by the code DescribeConfigs sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Setting:
    """The name users write, its kind, and what is allowed."""

    name: str
    kind: Kind
    at_least: float | None = None
    at_most: float | None = None
    or_exactly: int | None = None
    """One value allowed outside the bounds, such as -1 for "the codec's own default"."""
    one_of: tuple[str, ...] = ()
    is_fixed: bool = False
    """Accepted for compatibility, and only with its default."""
    is_live: bool = False
    """May be changed while the broker runs."""
    check: Callable[[str], str | None] | None = None
    """Says what is wrong with one text (each entry, for a list), or None."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting together with the attribute that holds it and its default."""

    setting: Setting
    attribute: str
    default: Value
    doc: str

    @property
    def name(self) -> str:
        return self.setting.name

    def parse(self, text: str) -> Value:
        """The value `text` stands for; ConfigError where it is not allowed."""
        setting = self.setting
        value = self._convert(text)
        if setting.is_fixed and value != self.default:
            only = render(self.default)
            raise ConfigError(self.name, f"{text!r} is refused: {self.doc}", f"leave it {only}")
        reason = _objection(setting, value)
        if reason is not None:
            raise refused(setting, text, reason)
        return value

    def normalised(self, text: str) -> str:
        """`text` as Kafka would show it again: trimmed, a list in the order given."""
        if self.setting.kind is Kind.LIST:
            return ",".join(entries(text))
        return render(self.parse(text)) or ""

    def _convert(self, text: str) -> Value:
        setting = self.setting
        match setting.kind:
            case Kind.BOOLEAN:
                return _boolean(setting, text)
            case Kind.INT | Kind.SHORT | Kind.LONG:
                return _whole(setting, text)
            case Kind.DOUBLE:
                return _double(setting, text)
            case Kind.LIST:
                return (
                    frozenset(entries(text))
                    if isinstance(self.default, frozenset)
                    else tuple(entries(text))
                )
            case _:
                return text.strip()


def declare(default: T, setting: Setting, doc: str) -> T:
    """A field of a settings class: its default, the setting it holds and a sentence of help."""
    return field(default=default, metadata={_SETTING: setting, _DOC: doc})


def declarations(settings_class: type) -> tuple[Declared, ...]:
    """The settings that the fields of a class declare, in order."""
    return tuple(
        Declared(
            each.metadata[_SETTING], each.name, cast("Value", each.default), each.metadata[_DOC]
        )
        for each in fields(settings_class)
        if _SETTING in each.metadata
    )


def by_name(declared: Iterable[Declared]) -> dict[str, Declared]:
    """The same, found by the name a user writes."""
    return {each.name: each for each in declared}


def render(value: Value) -> str | None:
    """A value as the text Kafka shows for it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case frozenset():
            return ",".join(sorted(value))
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def entries(text: str) -> list[str]:
    """The entries of a comma-separated list, trimmed, each once."""
    return list(dict.fromkeys(entry for part in text.split(",") if (entry := part.strip())))


def allowed(setting: Setting) -> str:
    """What may be written for a setting, as the end of a sentence."""
    if setting.one_of:
        names = ", ".join(setting.one_of)
        return (
            f"a comma-separated list of {names}" if setting.kind is Kind.LIST else f"one of {names}"
        )
    word = _KIND_WORDS[setting.kind]
    low, high = setting.at_least, setting.at_most
    if low is not None and high is not None:
        word += f" from {_number(low)} to {_number(high)}"
    elif low is not None:
        word += f" of at least {_number(low)}"
    elif high is not None:
        word += f" of at most {_number(high)}"
    if setting.or_exactly is not None:
        word += f", or {setting.or_exactly}"
    return word


def refused(setting: Setting, text: str, reason: str) -> ConfigError:
    """The error for a text that a setting does not take."""
    shown = "(hidden)" if setting.kind is Kind.PASSWORD else repr(text)
    return ConfigError(setting.name, f"{shown} is refused: {reason}", f"give {allowed(setting)}")


def unknown(name: str, known: Iterable[str], *, scope: str) -> ConfigError:
    """The error for a name nobody declared, with the nearest one that somebody did."""
    from difflib import get_close_matches  # seldom needed, and slow to import

    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    fix = (
        f"did you mean {near[0]!r}?"
        if near
        else f"see the list of {scope} settings in docs/settings.md"
    )
    return ConfigError(name, f"is not a {scope} setting", fix)


def parsed(
    known: Mapping[str, Declared], texts: Mapping[str, str], *, scope: str
) -> dict[str, Value]:
    """The attributes and values that texts by name stand for."""
    values: dict[str, Value] = {}
    for name, text in texts.items():
        declared = known.get(name)
        if declared is None:
            raise unknown(name, known, scope=scope)
        values[declared.attribute] = declared.parse(text)
    return values


_KIND_WORDS: Final = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "a text",
    Kind.INT: "a whole number",
    Kind.SHORT: "a whole number",
    Kind.LONG: "a whole number",
    Kind.DOUBLE: "a number",
    Kind.LIST: "a comma-separated list",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "a secret",
}
_BITS: Final = {Kind.SHORT: 15, Kind.INT: 31, Kind.LONG: 63}
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


def _boolean(setting: Setting, text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise refused(setting, text, "it is neither true nor false")
    return word == "true"


def _whole(setting: Setting, text: str) -> int:
    digits = text.strip()
    if not _WHOLE.fullmatch(digits) or len(digits) > 40:
        raise refused(setting, text, "it is not a whole number")
    value = int(digits)
    limit = 1 << _BITS[setting.kind]
    if not -limit <= value < limit:
        raise refused(setting, text, f"it does not fit in {_BITS[setting.kind] + 1} bits")
    return value


def _double(setting: Setting, text: str) -> float:
    try:
        value = float(text.strip())
    except ValueError:
        raise refused(setting, text, "it is not a number") from None
    if value != value or abs(value) > DOUBLE_MAX:
        raise refused(setting, text, "it is not a finite number")
    return value


def _objection(setting: Setting, value: Value) -> str | None:
    """Why a value of the right type is still not allowed, or None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if setting.or_exactly is not None and value == setting.or_exactly:
            return None
        if setting.at_least is not None and value < setting.at_least:
            return "it is too small"
        if setting.at_most is not None and value > setting.at_most:
            return "it is too large"
        return None
    for each in _texts(value):
        if setting.one_of and each not in setting.one_of:
            return f"there is no {each!r}"
        reason = setting.check(each) if setting.check is not None else None
        if reason is not None:
            return reason
    return None


def _texts(value: Value) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, tuple | frozenset) else ()


def _java_double(value: float) -> str:
    """A double as Java prints it: 0.5, 1.0E7, 1.7976931348623157E308."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(17):
        mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
