"""What one version of a message looks like on the wire: the declarations, resolved.

A plan is the common input of the two source writers. Does not know any Python source or bytes.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Annotated, cast, get_args, get_origin, get_type_hints

import msgspec

from ottla.errors import UnsupportedVersion
from ottla.protocol.message import (
    FIXED_TYPES,
    Array,
    Fixed,
    Marker,
    Message,
    Nested,
    Schema,
    String,
    parse_versions,
)


class FieldPlan(msgspec.Struct, frozen=True):
    """One field as one version has it, or an absent one with the default that stands for it."""

    name: str
    marker: Marker
    default: object
    present: bool
    nullable: bool
    tag: int | None
    element: StructPlan | None
    """The struct inside an Array of structs or a Nested field."""


class StructPlan(msgspec.Struct, frozen=True):
    """A message or a struct in one version. Fields stand in the order of the class body."""

    message_class: type[Message]
    flexible: bool
    fields: tuple[FieldPlan, ...]

    def plain(self) -> list[FieldPlan]:
        """The fields that always stand in the bytes, in their order."""
        return [field for field in self.fields if field.present and field.tag is None]

    def tagged(self) -> list[FieldPlan]:
        """The fields that may be in the tagged section, by tag."""
        fields = [field for field in self.fields if field.present and field.tag is not None]
        return sorted(fields, key=lambda field: field.tag or 0)

    def size_min(self) -> int:
        """The fewest bytes this struct can take."""
        size = sum(field_size_min(field, flexible=self.flexible) for field in self.plain())
        return size + 1 if self.flexible else size


def field_size_min(field: FieldPlan, *, flexible: bool) -> int:
    """The fewest bytes a present field can take."""
    marker = field.marker
    if isinstance(marker, FIXED_TYPES):
        return fixed_size(type(marker))
    if isinstance(marker, Nested):
        assert field.element is not None
        return 1 if field.nullable else field.element.size_min()
    if isinstance(marker, String):
        return 1 if flexible and marker.compact else 2
    return 1 if flexible else 4


def fixed_size(marker_class: type[Fixed]) -> int:
    """How many bytes a fixed-width primitive takes."""
    return struct.calcsize(">" + marker_class.code)


def fixed_element(marker: Array) -> type[Fixed] | None:
    """The fixed-width primitive an array holds, or None for strings and structs."""
    return None if marker.of is None or marker.of is String else cast("type[Fixed]", marker.of)


def schema_of(message_class: type[Message]) -> Schema:
    """The schema of a top-level message."""
    schema = getattr(message_class, "schema", None)
    assert isinstance(schema, Schema), f"{message_class.__name__} is not a top-level message"
    return schema


def plan_message(message_class: type[Message], version: int) -> StructPlan:
    """The plan of a top-level message, or UnsupportedVersion."""
    schema = schema_of(message_class)
    if version not in parse_versions(schema.versions):
        raise UnsupportedVersion(message_class.__name__, version)
    return _plan_struct(message_class, version, version in parse_versions(schema.flexible))


def _plan_struct(message_class: type[Message], version: int, flexible: bool) -> StructPlan:
    fields = []
    blank = message_class()
    for name, (marker, element_class) in _declarations(message_class).items():
        present = version in parse_versions(marker.versions)
        nullable = getattr(marker, "nullable", "none")
        tag = getattr(marker, "tag", None)
        assert tag is None or flexible or not present, f"{name} is tagged in a version without tags"
        element = None
        if element_class is not None and present:
            element = _plan_struct(element_class, version, flexible)
        fields.append(
            FieldPlan(
                name=name,
                marker=marker,
                default=getattr(blank, name),
                present=present,
                nullable=version in parse_versions(nullable),
                tag=tag,
                element=element,
            )
        )
    return StructPlan(message_class, flexible, tuple(fields))


@cache
def _declarations(message_class: type[Message]) -> dict[str, tuple[Marker, type[Message] | None]]:
    """Each field's marker and, where there is one, the struct class inside it."""
    hints = get_type_hints(message_class, include_extras=True)
    declarations = {}
    for name in message_class.__struct_fields__:
        hint = hints[name]
        assert get_origin(hint) is Annotated, f"{message_class.__name__}.{name} has no marker"
        declared, marker = get_args(hint)
        declarations[name] = (marker, _message_class_in(declared))
    return declarations


def _message_class_in(declared: object) -> type[Message] | None:
    """The Message class in `T`, `T | None`, `list[T]` or `list[T] | None`."""
    if isinstance(declared, type) and issubclass(declared, Message):
        return declared
    for inner in get_args(declared):
        found = _message_class_in(inner)
        if found is not None:
            return found
    return None
