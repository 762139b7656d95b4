"""Writes the source of a decoder: straight-line Python for one version of one message.

Everything is inlined: a struct in an array is a loop body, not a call. Neighbouring fixed-width
fields, and the length that follows them, are read by one precompiled `unpack_from`. A one-byte
varint is handled in place; longer ones, tags nobody knows and errors are calls into `wire.py`.

The written function is `decode(buffer, position=0)`, and:
1. it reads no byte outside of the buffer; bytes behind the message it lets be;
2. tags and the elements of all arrays longer than one together stay under ELEMENTS_MAX, and a count
   is believed only if as many elements could be in the bytes that remain (a single element is what
   nearly every array has, and adds no more than its parent, which is counted);
3. whatever is wrong with the bytes comes out as a ProtocolError.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.errors import BadLength, BadText, Truncated
from ottla.protocol import wire
from ottla.protocol.message import FIXED_TYPES, Array, Bytes, Nested, String, Uuid
from ottla.protocol.plan import FieldPlan, StructPlan, fixed_element, fixed_size

ELEMENTS_MAX: Final = 1_000_000
"""How many tags, and elements in arrays longer than one, a message may hold altogether."""
REQUEST_ELEMENTS_MAX: Final = 100_000
"""The same for a request: while a broker decodes one, all other clients wait."""


class DecoderSource:
    """Collects the lines of one decoder and the names they need."""

    def __init__(self, plan: StructPlan) -> None:
        self.plan = plan
        self.message_name = plan.message_class.__name__
        self.flexible = plan.flexible
        self.lines: list[str] = []
        self.indent = 2
        self.run: list[tuple[str, str]] = []
        self.names: dict[str, object] = {
            "BadLength": BadLength,
            "BadText": BadText,
            "Truncated": Truncated,
            "fail_count": wire.fail_count,
            "fail_length": wire.fail_length,
            "read_tag": wire.read_tag,
            "read_uvarint": wire.read_uvarint,
            "skip_tags": wire.skip_tags,
            "struct_error": struct.error,
            "unpack_from": struct.unpack_from,
        }
        self.variables = 0

    def write(self) -> str:
        """The source of the whole module: one function, `decode`."""
        construction = self._struct(self.plan)
        self._flush()
        # Bytes behind the message are let be, as Kafka does: librdkafka sends some after Metadata.
        self._line("if position > size:")
        self._line(f"    raise Truncated({self.message_name!r}, size)")
        self._line(f"return {construction}")
        head = [
            "def decode(buffer, position=0):",
            " size = len(buffer)",
            f" budget = {self._budget()}" if any("budget" in line for line in self.lines) else "",
            " try:",
        ]
        tail = [
            " except (IndexError, struct_error):",
            f"  raise Truncated({self.message_name!r}, size) from None",
            " except UnicodeDecodeError:",
            f"  raise BadText({self.message_name!r}, position) from None",
        ]
        return "\n".join(line for line in head + self.lines + tail if line) + "\n"

    def _budget(self) -> int:
        is_request = self.message_name.endswith("Request")
        return REQUEST_ELEMENTS_MAX if is_request else ELEMENTS_MAX

    def _line(self, text: str) -> None:
        """One line of code; whatever fixed-width fields are pending must be flushed before."""
        self.lines.append(" " * self.indent + text)

    def _variable(self, name: str) -> str:
        self.variables += 1
        return f"{name}_{self.variables}"

    def _flush(self) -> None:
        """Read the pending run of fixed-width fields at once."""
        if not self.run:
            return
        codes = "".join(code for _, code in self.run)
        targets = ", ".join(variable for variable, _ in self.run)
        if codes == "B":
            self._line(f"{targets} = buffer[position]")
            self._line("position += 1")
        else:
            unpacker = struct.Struct(">" + codes)
            name = "unpack_" + codes.replace("?", "t")
            self.names[name] = unpacker.unpack_from
            self._line(f"{targets}{',' * (len(self.run) == 1)} = {name}(buffer, position)")
            self._line(f"position += {unpacker.size}")
        self.run = []

    def _struct(self, plan: StructPlan) -> str:
        """Write the reading of a struct's fields; return the expression that constructs it."""
        values: dict[str, str] = {}
        for field in plan.plain():
            values[field.name] = self._variable(field.name)
            self._field(field, values[field.name])
        if plan.flexible:
            self._tags(plan, values)
        name = plan.message_class.__name__
        self.names[name] = plan.message_class
        return f"{name}({', '.join(self._arguments(plan, values))})"

    def _arguments(self, plan: StructPlan, values: dict[str, str]) -> list[str]:
        """By position up to the last field that was read; the class fills in the rest."""
        arguments: list[str] = []
        needed = 0
        for field in plan.fields:
            if field.name in values:
                arguments.append(values[field.name])
                needed = len(arguments)
            else:
                arguments.append(self._default(field))
        return arguments[:needed]

    def _default(self, field: FieldPlan) -> str:
        default = field.default
        if default is None or isinstance(default, (bool, int, float, str, bytes)):
            return repr(default)
        if isinstance(default, list):
            return "[]"
        self.names[type(default).__name__] = type(default)
        return f"{type(default).__name__}()"

    def _field(self, field: FieldPlan, target: str) -> None:
        marker = field.marker
        if isinstance(marker, FIXED_TYPES):
            self.run.append((target, marker.code))
        elif isinstance(marker, String):
            compact = self.flexible and marker.compact
            self._sized(field, target, "buffer[position:end].tobytes().decode()", compact, "h")
        elif isinstance(marker, Array):
            self._array(field, marker, target)
        elif isinstance(marker, Nested):
            self._nested(field, target)
        elif isinstance(marker, Bytes):
            self._sized(field, target, "buffer[position:end].tobytes()", self.flexible, "i")
        else:
            self._sized(field, target, "buffer[position:end]", self.flexible, "i")

    def _length(self, name: str, compact: bool, code: str) -> str:
        """Read a length or count into a variable. A compact one is one more than the length."""
        length = self._variable(name)
        self.run.append((length, "B" if compact else code))
        self._flush()
        if compact:
            self._line(f"if {length} > 127:")
            self._line(f" {length}, position = read_uvarint(buffer, position, {length})")
        return length

    def _sized(self, field: FieldPlan, target: str, read: str, compact: bool, code: str) -> None:
        """A field that is a length and as many bytes."""
        length = self._length("length", compact, code)
        is_null = f"not {length}" if compact else f"{length} < 0"
        end = f"position + {length} - 1" if compact else f"position + {length}"
        fail = f"fail_length({self.message_name!r}, {field.name!r}, {length})"
        if field.nullable:
            self._line(f"if {is_null}:")
            self._line(f" {target} = None")
            self._line("else:")
            self.indent += 1
        self._line(f"end = {end}")
        unacceptable = "end > size" if field.nullable else f"end > size or {is_null}"
        self._line(f"if {unacceptable}: {fail}")
        self._line(f"{target} = {read}")
        self._line("position = end")
        if field.nullable:
            self.indent -= 1

    def _array(self, field: FieldPlan, marker: Array, target: str) -> None:
        count = self._length("count", self.flexible, "i")
        if self.flexible:
            self._line(f"{count} -= 1")
        if field.nullable:
            self._line(f"if {count} < 0:")
            self._line(f" {target} = None")
            self._line("else:")
            self.indent += 1
        size = self._element_size_min(field, marker)
        fail = f" fail_count({self.message_name!r}, {field.name!r}, {count})"
        self._line(f"if {count} > 1:")
        self._line(f" budget -= {count}")
        self._line(f" if budget < 0 or {count} * {size} > size - position:")
        self._line(" " + fail)
        if not field.nullable:
            self._line(f"elif {count} < 0:")
            self._line(fail)
        self._elements(field, marker, target, count)
        if field.nullable:
            self.indent -= 1

    def _element_size_min(self, field: FieldPlan, marker: Array) -> int:
        if field.element is not None:
            return field.element.size_min()
        fixed = fixed_element(marker)
        if fixed is not None:
            return fixed_size(fixed)
        return 1 if self.flexible else 2

    def _elements(self, field: FieldPlan, marker: Array, target: str, count: str) -> None:
        fixed = fixed_element(marker)
        if fixed is not None and fixed is not Uuid:
            read = f"unpack_from(f'>{{{count}}}{fixed.code}', buffer, position)"
            self._line(f"{target} = list({read})")
            self._line(f"position += {count} * {fixed_size(fixed)}")
            return
        self._line(f"{target} = []")
        self._line(f"while {count}:")
        self.indent += 1
        self._line(f"{count} -= 1")
        if field.element is not None:
            value = self._struct(field.element)
            self._flush()
        elif fixed is None:
            value = self._variable(field.name)
            read = "buffer[position:end].tobytes().decode()"
            element = FieldPlan(field.name, String("0+"), "", True, False, None, None)
            self._sized(element, value, read, self.flexible, "h")
        else:
            value = "buffer[position:position + 16].tobytes()"
        self._line(f"{target}.append({value})")
        if fixed is Uuid:
            self._line("position += 16")
        self.indent -= 1

    def _nested(self, field: FieldPlan, target: str) -> None:
        assert field.element is not None
        if not field.nullable:
            construction = self._struct(field.element)
            self._flush()
            self._line(f"{target} = {construction}")
            return
        marker = self._variable("marker")
        self.run.append((marker, "b"))
        self._flush()
        self._line(f"if {marker} < 0:")
        self._line(f" {target} = None")
        self._line("else:")
        self.indent += 1
        construction = self._struct(field.element)
        self._flush()
        self._line(f"{target} = {construction}")
        self.indent -= 1

    def _tags(self, plan: StructPlan, values: dict[str, str]) -> None:
        """The tagged section: known tags are read in place, others passed over."""
        fields = plan.tagged()
        if not fields and not self.run:
            self._line("if buffer[position]:")
            self._line(" budget -= buffer[position]")
            self._line(" position = skip_tags(buffer, position, budget)")
            self._line("else:")
            self._line(" position += 1")
            return
        tags = self._variable("tags")
        self.run.append((tags, "B"))
        self._flush()
        for field in fields:
            values[field.name] = self._variable(field.name)
            self._line(f"{values[field.name]} = {self._default(field)}")
        self._line(f"if {tags}:")
        self.indent += 1
        self._line(f"budget -= {tags}")
        if not fields:
            self._line("position = skip_tags(buffer, position - 1, budget)")
            self.indent -= 1
            return
        self._line(f"if budget < 0 or {tags} > {wire.TAGS_MAX}:")
        self._line(f" fail_count({self.message_name!r}, 'tagged fields', {tags})")
        self._line(f"while {tags}:")
        self.indent += 1
        self._line(f"{tags} -= 1")
        tag, tag_end = self._variable("tag"), self._variable("tag_end")
        self._line(f"{tag}, position, {tag_end} = read_tag(buffer, position)")
        for field in fields:
            self._line(f"if {tag} == {field.tag}:")
            self.indent += 1
            self._field(field, values[field.name])
            self._flush()
            self._line(f"if position != {tag_end}:")
            self._line(f" fail_length({self.message_name!r}, {field.name!r}, {tag_end} - position)")
            self.indent -= 1
        self._line(f"position = {tag_end}")
        self.indent -= 2
