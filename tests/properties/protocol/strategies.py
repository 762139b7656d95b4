"""Random messages: hypothesis strategies derived from the declarations themselves."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from ottla.errors import ErrorCode
from ottla.protocol.message import (
    FIXED_TYPES,
    Array,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nested,
    Records,
    String,
    Uint16,
    Uuid,
)
from ottla.protocol.plan import FieldPlan, StructPlan, fixed_element, plan_message
from unit.protocol.every_message import every_version

INTEGER_BITS = {Int8: 8, Int16: 16, Int32: 32, Int64: 64}
A_THOUSAND_YEARS_MS = 1000 * 365 * 86_400_000
TIME_WORDS = ("_ms", "timestamp", "time")
FIRST_OWN_TAG = 10_000
"""From here on tags are ours, and others pass over what they mark."""


@cache
def messages(
    message_class: type[Message], version: int, *, plausible: bool = False
) -> st.SearchStrategy[Message]:
    """Any message of one version. A plausible one has known error codes, times of our era, and
    only fields that Kafka has."""
    return _structs(plan_message(message_class, version), plausible)


def messages_with_version(
    *, among: list[tuple[type[Message], int]] | None = None, plausible: bool = False
) -> st.SearchStrategy[tuple[Message, int]]:
    """Any message of any version, together with the version."""
    return st.sampled_from(among or every_version()).flatmap(
        lambda pair: st.tuples(messages(*pair, plausible=plausible), st.just(pair[1]))
    )


def _structs(plan: StructPlan, plausible: bool) -> st.SearchStrategy[Message]:
    fields = {
        field.name: _fields(field, plan.flexible, plausible)
        for field in plan.fields
        if field.present and not (plausible and _is_own(field))
    }
    return st.fixed_dictionaries(fields).map(lambda values: plan.message_class(**values))


def _is_own(field: FieldPlan) -> bool:
    return field.tag is not None and field.tag >= FIRST_OWN_TAG


def _fields(field: FieldPlan, flexible: bool, plausible: bool) -> st.SearchStrategy[object]:
    values = _values(field, flexible, plausible)
    if field.tag is not None:
        values = st.one_of(st.just(field.default), values)
    return st.one_of(st.none(), values) if field.nullable else values


def _values(field: FieldPlan, flexible: bool, plausible: bool) -> st.SearchStrategy[object]:
    marker = field.marker
    if isinstance(marker, FIXED_TYPES):
        return _primitives(type(marker), field.name, plausible)
    if isinstance(marker, String):
        return _strings()
    if isinstance(marker, Bytes):
        return st.binary(max_size=200)
    if isinstance(marker, Records):
        return st.binary(max_size=200).map(memoryview)
    assert isinstance(marker, Array | Nested)
    if field.element is not None:
        structs = _structs(field.element, plausible)
        return structs if isinstance(marker, Nested) else st.lists(structs, max_size=2)
    fixed = fixed_element(marker)
    elements = _strings() if fixed is None else _primitives(fixed, field.name, plausible)
    return st.lists(elements, max_size=3)


def _strings() -> st.SearchStrategy[str]:
    return st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.just("x" * 130),  # a length of two bytes in compact form
    )


def _primitives(marker_class: type, name: str, plausible: bool) -> st.SearchStrategy[object]:
    if marker_class is Bool:
        return st.booleans()
    if marker_class is Uuid:
        return st.binary(min_size=16, max_size=16)
    if marker_class is Float64:
        return st.floats(allow_nan=False)
    if marker_class is Uint16:
        return st.integers(0, 2**16 - 1)
    if plausible and name.endswith("error_code"):
        return st.sampled_from([int(code) for code in ErrorCode if code <= 100])
    bits = INTEGER_BITS[marker_class]
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    if plausible and any(word in name for word in TIME_WORDS):
        least, most = 0, min(most, A_THOUSAND_YEARS_MS)
    return st.integers(least, most)
