"""Writes the source of an encoder: straight-line Python for one version of one message.

Everything is inlined, and neighbouring fixed-width fields are packed together with the length that
follows them or with the empty tagged section that ends their struct (a pad byte of the format).

The written function is `encode(message, out, regions)`: it appends to the bytearray `out`. A
FileRegion in a records field appends its length to `out` and `(len(out), region)` to `regions`: its
bytes belong at that position. With `lends=True` so does a long memoryview, which is then sent from
where it stands.

A field that the version lacks is left out silently, whatever its value: who fills in a message for
an old peer decides what that peer must be told. A tagged field is left out when it has its default.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from ottla.model.file_region import FileRegion
from ottla.protocol import wire
from ottla.protocol.message import FIXED_TYPES, Array, Bytes, Nested, String, Uuid
from ottla.protocol.plan import FieldPlan, StructPlan, fixed_element

LENT_BYTES_MIN: Final = 16 * 1024
"""Shorter records are copied: that costs less than sending another part."""

_Writer = Callable[[FieldPlan, str, bool, str], None]


class EncoderSource:
    """Collects the lines of one encoder and the names they need."""

    def __init__(self, plan: StructPlan) -> None:
        self.plan = plan
        self.flexible = plan.flexible
        self.lines: list[str] = []
        self.indent = 2
        self.run: list[tuple[str, str]] = []
        self.out = "out"
        self.names: dict[str, object] = {
            "FileRegion": FileRegion,
            "pack": struct.pack,
            "write_uvarint": wire.write_uvarint,
        }
        self.variables = 0

    def write(self) -> str:
        """The source of the whole module: one function, `encode`.

        What goes wrong in it is a mistake of ours, such as null in a field that cannot be null; the
        error gets a note that names the message.
        """
        self._struct(self.plan, "message")
        self._flush()
        head = ["def encode(message, out, regions, lends=False):", " try:"]
        tail = [
            "  return",
            " except Exception as error:",
            f"  error.add_note('while encoding {self.plan.message_class.__name__}')",
            "  raise",
            "",
        ]
        return "\n".join(head + self.lines + tail)

    def _line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)

    def _variable(self, name: str) -> str:
        self.variables += 1
        return f"{name}_{self.variables}"

    def _appended(self, run: list[tuple[str, str]]) -> str:
        """The statement that packs a run of (format code, value); a pad byte has no value."""
        codes = "".join(code for code, _ in run)
        if codes in ("x", "B"):
            return f"{self.out}.append({run[0][1] or 0})"
        if set(codes) == {"x"}:
            return f"{self.out} += {bytes(len(codes))!r}"
        name = "pack_" + codes.replace("?", "t")
        self.names[name] = struct.Struct(">" + codes).pack
        return f"{self.out} += {name}({', '.join(value for _, value in run if value)})"

    def _flush(self) -> None:
        """Write the pending run of fixed-width fields at once."""
        if self.run:
            self._line(self._appended(self.run))
            self.run = []

    def _flush_with(self, code: str, value: str) -> None:
        """Write the pending run and, in the same go, one more value."""
        self.run.append((code, value))
        self._flush()

    def _flush_with_varint(self, value: str) -> None:
        """Write the pending run and a varint, which nearly always is one byte."""
        run = self.run
        self.run = []
        self._line(f"if {value} < 128:")
        self._line(" " + self._appended([*run, ("B", value)]))
        self._line("else:")
        if run:
            self._line(" " + self._appended(run))
        self._line(f" write_uvarint({self.out}, {value})")

    def _struct(self, plan: StructPlan, source: str) -> None:
        for field in plan.plain():
            self._field(field, f"{source}.{field.name}")
        if plan.flexible:
            self._tags(plan, source)

    def _field(self, field: FieldPlan, source: str) -> None:
        marker = field.marker
        if isinstance(marker, FIXED_TYPES):
            self.run.append((marker.code, source))
        elif isinstance(marker, Nested):
            self._nested(field, source)
        elif isinstance(marker, Array):
            self._nullable(field, source, self.flexible, "i", self._array)
        elif isinstance(marker, String):
            compact = self.flexible and marker.compact
            self._nullable(field, source, compact, "h", self._string)
        elif isinstance(marker, Bytes):
            self._nullable(field, source, self.flexible, "i", self._bytes)
        else:
            self._nullable(field, source, self.flexible, "i", self._records)

    def _nullable(
        self, field: FieldPlan, source: str, compact: bool, code: str, write: _Writer
    ) -> None:
        """A field with a length: write null as its length, or else what `write` writes."""
        value = self._variable(field.name)
        self._line(f"{value} = {source}")
        if not field.nullable:
            write(field, value, compact, code)
            return
        run = list(self.run)
        self._line(f"if {value} is None:")
        self.indent += 1
        self._flush_with(*(("x", "") if compact else (code, "-1")))
        self.indent -= 1
        self._line("else:")
        self.indent += 1
        self.run = run
        write(field, value, compact, code)
        self._flush()
        self.indent -= 1

    def _length(self, value: str, compact: bool, code: str) -> None:
        """Write the pending run and the length of `value`."""
        if not compact:
            self._flush_with(code, f"len({value})")
            return
        length = self._variable("length")
        self._line(f"{length} = len({value}) + 1")
        self._flush_with_varint(length)

    def _string(self, field: FieldPlan, value: str, compact: bool, code: str) -> None:
        self._line(f"{value} = {value}.encode()")
        self._bytes(field, value, compact, code)

    def _bytes(self, _field: FieldPlan, value: str, compact: bool, code: str) -> None:
        self._length(value, compact, code)
        self._line(f"{self.out} += {value}")

    def _records(self, _field: FieldPlan, value: str, compact: bool, code: str) -> None:
        assert self.out == "out", "a tagged field cannot hold records"
        self._length(value, compact, code)
        self._line(f"if type({value}) is FileRegion or lends and len({value}) >= {LENT_BYTES_MIN}:")
        self._line(f" regions.append((len(out), {value}))")
        self._line("else:")
        self._line(f" out += {value}")

    def _array(self, field: FieldPlan, value: str, compact: bool, code: str) -> None:
        self._length(value, compact, code)
        marker = field.marker
        assert isinstance(marker, Array)
        fixed = fixed_element(marker)
        if fixed is Uuid:
            self._line(f"{self.out} += b''.join({value})")
            return
        if fixed is not None:
            packed = f"pack(f'>{{len({value})}}{fixed.code}', *{value})"
            self._line(f"if {value}: {self.out} += {packed}")
            return
        element = self._variable("element")
        self._line(f"for {element} in {value}:")
        self.indent += 1
        if field.element is not None:
            start = len(self.lines)
            self._struct(field.element, element)
            self._flush()
            if len(self.lines) == start:
                self._line("pass")
        else:
            self._line(f"{element} = {element}.encode()")
            self._bytes(field, element, self.flexible, "h")
        self.indent -= 1

    def _nested(self, field: FieldPlan, source: str) -> None:
        assert field.element is not None
        value = self._variable(field.name)
        self._line(f"{value} = {source}")
        if not field.nullable:
            self._struct(field.element, value)
            return
        run = list(self.run)
        self._line(f"if {value} is None:")
        self.indent += 1
        self._flush_with("b", "-1")
        self.indent -= 1
        self._line("else:")
        self.indent += 1
        self.run = [*run, ("b", "1")]
        self._struct(field.element, value)
        self._flush()
        self.indent -= 1

    def _tags(self, plan: StructPlan, source: str) -> None:
        """The tagged section; nearly always it is empty, and then one more byte of the run."""
        fields = plan.tagged()
        if not fields:
            self.run.append(("x", ""))
            return
        values = [self._variable(field.name) for field in fields]
        for field, value in zip(fields, values, strict=True):
            self._line(f"{value} = {source}.{field.name}")
        absent = [self._is_absent(*pair) for pair in zip(fields, values, strict=True)]
        run = list(self.run)
        self._line(f"if {' and '.join(absent)}:")
        self.indent += 1
        self._flush_with("x", "")
        self.indent -= 1
        self._line("else:")
        self.indent += 1
        self.run = run
        self._flush()
        self._section(fields, values, absent)
        self.indent -= 1

    def _section(self, fields: list[FieldPlan], values: list[str], absent: list[str]) -> None:
        """A tagged section with something in it."""
        outer, section, count = self.out, self._variable("section"), self._variable("tags")
        self._line(f"{section} = bytearray()")
        self._line(f"{count} = 0")
        for field, value, condition in zip(fields, values, absent, strict=True):
            self._line(f"if not ({condition}):")
            self.indent += 1
            self._line(f"{count} += 1")
            self._tag(field, value, section)
            self.indent -= 1
        self.out = outer
        self._line(f"write_uvarint({outer}, {count})")
        self._line(f"{outer} += {section}")

    def _tag(self, field: FieldPlan, value: str, section: str) -> None:
        """One tagged field: its tag, its size, its content."""
        self.out = self._variable("content")
        self._line(f"{self.out} = bytearray()")
        self._field(field, value)
        self._flush()
        self._line(f"write_uvarint({section}, {field.tag})")
        self._line(f"write_uvarint({section}, len({self.out}))")
        self._line(f"{section} += {self.out}")

    def _is_absent(self, field: FieldPlan, value: str) -> str:
        """The condition under which a tagged field is not written: it has its default."""
        if field.default is None and (field.nullable or field.element is None):
            return f"{value} is None"
        if isinstance(field.default, list):
            return f"{value} == []" if field.nullable else f"not {value}"
        if field.element is None:
            return f"{value} == {field.default!r}"
        default = self._variable("default")
        self.names[default] = field.element.message_class()
        equals = f"{value} == {default}"
        return equals if field.nullable else f"({value} is None or {equals})"
