"""Turns a line of input into a record: text, JSON, hex or base64, with keys and headers."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from ottla.cli.moment import parse_moment_ms
from ottla.errors import InvalidRecord
from ottla.records.record import Headers


class TextFormat(Enum):
    """How bytes are written as text."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


class NewRecord(msgspec.Struct, frozen=True, gc=False):
    """A record to be written; partition and timestamp are chosen unless given."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InputRules:
    """How lines are read."""

    format: TextFormat = TextFormat.TEXT
    key_separator: bytes | None = None
    null_marker: bytes | None = None
    headers: Headers = ()
    partition: int | None = None


_TIMESTAMP_MS_MAX: Final = 2**63 - 1
_ABSENT: Final = msgspec.Raw()
"""No JSON text at all, which is not the same as null."""


class JsonHeader(msgspec.Struct, forbid_unknown_fields=True):
    """A header whose name may appear several times, or whose value is not text."""

    key: str
    value: str | None = None
    value_base64: str | None = None


class JsonRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A line of JSON: what `ottla consume --format json` prints, and what people write by hand."""

    value: msgspec.Raw = _ABSENT
    value_base64: str | None = None
    key: msgspec.Raw = _ABSENT
    key_base64: str | None = None
    headers: dict[str, str | None] | list[JsonHeader] = msgspec.field(default_factory=list)
    partition: int | None = None
    timestamp: int | str | None = None
    topic: str | None = None
    """Where it was read from; says nothing about where it goes."""
    offset: int | None = None


_decode_json = msgspec.json.Decoder(JsonRecord).decode


def parse_line(line: bytes, rules: InputRules) -> NewRecord:
    """The record that one line stands for; InvalidRecord says why it stands for none."""
    if rules.format is TextFormat.JSON:
        return _parse_json(line, rules)
    key: bytes | None = None
    value = line
    if rules.key_separator is not None:
        before, found, after = line.partition(rules.key_separator)
        if found:
            key, value = before, after
    return NewRecord(
        value=_decoded(value, rules),
        key=None if key is None else _decoded(key, rules),
        headers=rules.headers,
        partition=rules.partition,
    )


def _decoded(text: bytes, rules: InputRules) -> bytes | None:
    if rules.null_marker is not None and text == rules.null_marker:
        return None
    if rules.format is TextFormat.TEXT:
        return text
    try:
        if rules.format is TextFormat.HEX:
            return bytes.fromhex(text.decode("ascii"))
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise InvalidRecord(f"{_excerpt(text)} is not {rules.format.value}") from None


def _parse_json(line: bytes, rules: InputRules) -> NewRecord:
    try:
        record = _decode_json(line)
    except msgspec.DecodeError as error:
        raise InvalidRecord(f"{_excerpt(line)} is not a record in JSON ({error})") from None
    if not bytes(record.value) and record.value_base64 is None:
        raise InvalidRecord(
            f'{_excerpt(line)} has no "value"; where each line is a value itself, use --format text'
        )
    return NewRecord(
        value=_json_bytes(record.value, record.value_base64),
        key=_json_bytes(record.key, record.key_base64),
        headers=rules.headers + _json_headers(record.headers),
        partition=record.partition if rules.partition is None else rules.partition,
        timestamp_ms=_json_timestamp(record.timestamp),
    )


def _json_bytes(raw: msgspec.Raw, encoded: str | None) -> bytes | None:
    """A string stands for its UTF-8, null for null, anything else for its own JSON text."""
    if encoded is not None:
        if bytes(raw):
            raise InvalidRecord("text and base64 of the same thing: leave one of them out")
        try:
            return base64.b64decode(encoded, validate=True)
        except (ValueError, binascii.Error):
            raise InvalidRecord(f"{encoded!r} is not base64") from None
    text = bytes(raw)
    if text[:1] == b'"':
        return msgspec.json.decode(text, type=str).encode()
    return None if text in (b"", b"null") else text


def _json_headers(headers: dict[str, str | None] | list[JsonHeader]) -> Headers:
    if isinstance(headers, dict):
        return tuple(
            (name, None if value is None else value.encode()) for name, value in headers.items()
        )
    return tuple((header.key, _header_value(header)) for header in headers)


def _header_value(header: JsonHeader) -> bytes | None:
    if header.value_base64 is not None:
        return _json_bytes(_ABSENT, header.value_base64)
    return None if header.value is None else header.value.encode()


def _json_timestamp(timestamp: int | str | None) -> int | None:
    if timestamp is None:
        return None
    time_ms = timestamp if isinstance(timestamp, int) else parse_moment_ms(timestamp)
    if time_ms is None:
        raise InvalidRecord(f"{timestamp!r} is neither milliseconds nor an ISO time")
    if not 0 <= time_ms <= _TIMESTAMP_MS_MAX:
        raise InvalidRecord(f"the timestamp {timestamp!r} is not in milliseconds since 1970")
    return time_ms


def _excerpt(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
