"""What changed in a store as records of its changelog topic, with Kafka Streams' keys; and back."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final

from ottla.streams.engine.records import InputRecord, OutputRecord
from ottla.streams.store_spec import StoreKind, StoreSpec

_TIME: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">I")
_TIMED: Final = (StoreKind.TABLE, StoreKind.WINDOW)
"""Their values begin with a timestamp, which is the record's in the changelog."""


def changelog_records(
    spec: StoreSpec, changes: Mapping[bytes, bytes | None], topic: str, partition: int
) -> list[OutputRecord]:
    """One record for each key that changed; those of the indexes by time are left out."""
    records = []
    entries = list(changes.items())
    if spec.kind is StoreKind.SUPPRESSION:  # a key may have left one place and taken another
        entries.sort(key=lambda entry: entry[1] is not None)
    for key, value in entries:
        named = _key(spec.kind, key)
        if named is not None:
            timestamp_ms = 0
            if value is not None and spec.kind in _TIMED:
                timestamp_ms, value = _TIME.unpack_from(value)[0], value[8:]
            elif spec.kind is StoreKind.SUPPRESSION:
                timestamp_ms = _TIME.unpack_from(key, 1)[0]
            records.append(OutputRecord(topic, named, value, timestamp_ms, partition=partition))
    return records


def store_changes(
    spec: StoreSpec, record: InputRecord, before: bytes | None
) -> Iterator[tuple[bytes, bytes | None]]:
    """What a record of the changelog changes in the store, indexes by time included.

    `before` is what the store has under `place_name` of the record, which tells where a suppressed
    update waits.
    """
    key, value = record.key, record.value
    assert key is not None
    match spec.kind:
        case StoreKind.WINDOW | StoreKind.JOIN_WINDOW:
            name, time = key[:-12], key[-12:-4]
            yield _entry(name) + time, _stamped(spec, record)
            yield b"t" + time + name, None if value is None else b""
        case StoreKind.SESSION:
            name, times = key[:-16], key[-16:]
            yield _entry(name) + times, value
            yield b"t" + times + name, None if value is None else b""
        case StoreKind.SUPPRESSION:
            if before is not None:
                yield b"t" + before + key, None
            place = None if value is None else _TIME.pack(record.timestamp_ms)
            yield b"k" + key, place
            if place is not None:
                yield b"t" + place + key, value
        case _:
            yield key, _stamped(spec, record)


def place_name(record: InputRecord) -> bytes:
    """Under which a store of suppressed updates has the place of this one."""
    return b"k" + (record.key or b"")


def _entry(name: bytes) -> bytes:
    return b"k" + _LENGTH.pack(len(name)) + name


def _stamped(spec: StoreSpec, record: InputRecord) -> bytes | None:
    if record.value is None or spec.kind not in _TIMED:
        return record.value
    return _TIME.pack(record.timestamp_ms) + record.value


def _key(kind: StoreKind, key: bytes) -> bytes | None:
    """A key as it is in the changelog: without the letter and the length we put in front."""
    if kind in (StoreKind.WINDOW, StoreKind.JOIN_WINDOW):
        return key[5:] + bytes(4) if key[:1] == b"k" else None
    if kind is StoreKind.SESSION:
        return key[5:] if key[:1] == b"k" else None
    if kind is StoreKind.SUPPRESSION:
        return key[9:] if key[:1] == b"t" else None
    return key
