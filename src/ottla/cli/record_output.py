"""Turns records into lines of output: text, JSON, hex or base64, with what was asked for beside."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from ottla.cli.output import time_text
from ottla.cli.record_input import TextFormat
from ottla.clients.consumer.record import ConsumerRecord
from ottla.records.record import Headers


@dataclass(frozen=True, slots=True)
class OutputRules:
    """How records are written."""

    format: TextFormat = TextFormat.TEXT
    separator: bytes = b"\t"
    null_marker: bytes = b""
    with_offsets: bool = False
    with_timestamps: bool = False
    with_headers: bool = False
    with_keys: bool = False


def render(records: Iterable[ConsumerRecord], rules: OutputRules) -> bytes:
    """The lines of some records."""
    if rules.format is TextFormat.JSON:
        return b"".join(_json_line(record) for record in records)
    encode = _encoder(rules)
    lines: list[bytes] = []
    for record in records:
        columns: list[bytes] = []
        if rules.with_offsets:
            columns.append(b"%d:%d" % (record.partition, record.offset))
        if rules.with_timestamps:
            columns.append(time_text(record.timestamp_ms).encode())
        if rules.with_headers:
            columns.append(_header_column(record.headers, encode))
        if rules.with_keys:
            columns.append(encode(record.key))
        columns.append(encode(record.value))
        lines.append(rules.separator.join(columns))
    return b"\n".join(lines) + b"\n" if lines else b""


def _encoder(rules: OutputRules) -> Callable[[bytes | None], bytes]:
    null_marker = rules.null_marker
    if rules.format is TextFormat.HEX:
        return lambda data: null_marker if data is None else data.hex().encode()
    if rules.format is TextFormat.BASE64:
        return lambda data: null_marker if data is None else base64.b64encode(data)
    return lambda data: null_marker if data is None else data


def _header_column(headers: Headers, encode: Callable[[bytes | None], bytes]) -> bytes:
    return b",".join(name.encode() + b"=" + encode(value) for name, value in headers)


def _json_line(record: ConsumerRecord) -> bytes:
    line: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
    }
    line.update(_json_field("key", record.key))
    line.update(_json_field("value", record.value))
    if record.headers:
        line["headers"] = _json_headers(record.headers)
    return msgspec.json.encode(line) + b"\n"


def _json_field(name: str, data: bytes | None) -> dict[str, object]:
    """Text as a string, null as null, other bytes as base64 under a name that says so."""
    text = _text(data)
    if data is not None and text is None:
        return {f"{name}_base64": base64.b64encode(data).decode()}
    return {name: text}


def _json_headers(headers: Headers) -> object:
    texts = {name: _text(value) for name, value in headers}
    is_simple = len(texts) == len(headers) and all(
        value is None or texts[name] is not None for name, value in headers
    )
    if is_simple:
        return texts
    return [{"key": name, **_json_field("value", value)} for name, value in headers]


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
