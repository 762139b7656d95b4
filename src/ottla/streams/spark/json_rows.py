"""JSON values of which only some fields are wanted, as objects with an attribute for each of them.

A decoder that is told what to read skips the rest, which takes a third of the time, but does not
look at it closely: a text that is not UTF-8 or a number no float can hold goes unnoticed. A task of
the engine would fail on them, so columns with something of the kind are left to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy
import numpy.typing
import pyarrow
from pyarrow import compute

_LONG_DIGITS: Final = 200
"""Shorter numbers, with an exponent below a hundred, fit into a float."""
_LARGE: Final = re.compile(rb"[:,\[]\s*-?(?:[0-9.]+[eE]\+?[0-9]{3}|[0-9]{%d})" % _LONG_DIGITS)
_LOWER: Final = 0x20
"""Makes a small letter of a letter."""


class NotByColumns(Exception):
    """These records are for a task of the engine."""


class UnfitNames(Exception):
    """Fields with names that only dicts can have."""


def row_type(attributes: Mapping[str, str]) -> type[msgspec.Struct]:
    """A class with these attributes, by the names of their fields in JSON; all may be missing."""
    try:
        return msgspec.defstruct(
            "Row",
            [(attribute, Any, None) for attribute in attributes.values()],
            rename={attribute: name for name, attribute in attributes.items()},
            gc=False,
        )
    except ValueError as error:
        raise UnfitNames from error


def json_rows(column: pyarrow.Array, row: type[msgspec.Struct]) -> list[Any]:
    """An object for each value; nothing has no fields. Raises where not all values are objects."""
    data = column.to_pylist()
    column.cast(pyarrow.string())
    if may_have_large_numbers(column) and _LARGE.search(b"\n".join(filter(None, data))):
        raise NotByColumns
    decode, nothing = msgspec.json.Decoder(row).decode, row()
    return [nothing if one is None else decode(one) for one in data]


def may_have_large_numbers(column: pyarrow.Array) -> bool:
    """Whether values are long, or a digit stands before an e and two after it: a quick look."""
    if (compute.max(compute.binary_length(column)).as_py() or 0) >= _LONG_DIGITS:
        return True
    bytes_of = numpy.frombuffer(column.buffers()[2] or b"", numpy.uint8)
    exponents = numpy.flatnonzero((bytes_of | _LOWER) == ord("e"))
    exponents = exponents[(exponents > 0) & (exponents + 4 < len(bytes_of))]
    exponents = exponents[_are_digits(bytes_of[exponents - 1])]
    signed = exponents + (bytes_of[exponents + 1] == ord("+"))
    return bool((_are_digits(bytes_of[signed + 1]) & _are_digits(bytes_of[signed + 2])).any())


def _are_digits(codes: numpy.typing.NDArray[numpy.uint8]) -> numpy.typing.NDArray[numpy.bool_]:
    return (codes >= ord("0")) & (codes <= ord("9"))
