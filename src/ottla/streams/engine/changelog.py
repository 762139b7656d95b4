"""What changed in a store as records of its changelog topic, with Kafka Streams' keys."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from ottla.streams.engine.records import OutputRecord
from ottla.streams.store_spec import StoreKind, StoreSpec

_TIME: Final = struct.Struct(">q")


def changelog_records(
    spec: StoreSpec, changes: Mapping[bytes, bytes | None], topic: str, partition: int
) -> list[OutputRecord]:
    """One record for each key that changed; those of the indexes by time are left out."""
    records = []
    for key, value in changes.items():
        named = _key(spec.kind, key)
        if named is not None:
            timestamp_ms = 0
            if value is not None and spec.kind in (StoreKind.TABLE, StoreKind.WINDOW):
                timestamp_ms, value = _TIME.unpack_from(value)[0], value[8:]
            records.append(OutputRecord(topic, named, value, timestamp_ms, partition=partition))
    return records


def _key(kind: StoreKind, key: bytes) -> bytes | None:
    """A key as it is in the changelog: without the letter and the length we put in front."""
    if kind in (StoreKind.WINDOW, StoreKind.JOIN_WINDOW):
        return key[5:] + bytes(4) if key[:1] == b"k" else None
    if kind is StoreKind.SESSION:
        return key[5:] if key[:1] == b"k" else None
    if kind is StoreKind.SUPPRESSION:
        return key[9:] if key[:1] == b"t" else None
    return key
