"""Offsets of a group in a file: CSV as Kafka's own tool writes and reads it, or JSON with all.

A CSV line is `topic,partition,offset`, or `group,topic,partition,offset` where the file has several
groups; a first line of names is skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from enum import Enum

import msgspec

from ottla.clients.group_offsets import CommittedOffset
from ottla.errors import ConfigError
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset, TopicPartition

Offsets = Mapping[TopicPartition, CommittedOffset]


class OffsetFormat(Enum):
    """How offsets are written."""

    CSV = "csv"
    JSON = "json"


class JsonOffset(msgspec.Struct):
    """One offset as JSON has it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = int(NO_LEADER_EPOCH)
    metadata: str = ""


class JsonOffsets(msgspec.Struct):
    """The offsets of one group as JSON has them."""

    group: str
    offsets: list[JsonOffset]


def write_offsets(group: str, offsets: Offsets, format_: OffsetFormat) -> str:
    """The text of a file."""
    if format_ is OffsetFormat.CSV:
        out = io.StringIO()
        rows = ((each.topic, each.partition, at.offset) for each, at in sorted(offsets.items()))
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()
    document = JsonOffsets(
        group,
        [
            JsonOffset(each.topic, each.partition, at.offset, at.leader_epoch, at.metadata)
            for each, at in sorted(offsets.items())
        ],
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def read_offsets(content: bytes, group: str, name: str) -> dict[TopicPartition, CommittedOffset]:
    """What a file says of the group; ConfigError, naming the file, where it cannot be read."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigError(name, "is not UTF-8 text", "check the path") from None
    plain = text.removeprefix("\ufeff").strip()
    rows = _read_json(plain, name) if plain[:1] in ("{", "[") else _read_csv(plain, group, name)
    found: dict[TopicPartition, CommittedOffset] = {}
    for row in rows:
        partition = TopicPartition(row.topic, row.partition)
        if row.offset < 0 or row.partition < 0:
            raise ConfigError(name, f"{partition} at {row.offset} is no place in a partition")
        if partition in found:
            raise ConfigError(name, f"{partition} is there twice")
        epoch = LeaderEpoch(row.leader_epoch)
        found[partition] = CommittedOffset(Offset(row.offset), epoch, row.metadata)
    if not found:
        raise ConfigError(name, f"there are no offsets of group {group!r} in it")
    return found


def _read_json(text: str, name: str) -> list[JsonOffset]:
    try:
        if text.startswith("["):
            return msgspec.json.decode(text, type=list[JsonOffset])
        return msgspec.json.decode(text, type=JsonOffsets).offsets
    except msgspec.MsgspecError as error:
        raise ConfigError(name, f"the JSON cannot be read ({error})") from None


def _read_csv(text: str, group: str, name: str) -> list[JsonOffset]:
    found: list[JsonOffset] = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        fields = [field.strip() for field in row]
        if not any(fields) or (number == 1 and fields[-1] == "offset"):
            continue
        if len(fields) == 4:
            if fields[0] != group:
                continue
            fields = fields[1:]
        if len(fields) != 3 or not all(field.isdecimal() for field in fields[1:]):
            problem = f"line {number} ({','.join(row)!r}) cannot be read"
            raise ConfigError(name, problem, "write topic,partition,offset")
        found.append(JsonOffset(fields[0], int(fields[1]), int(fields[2])))
    return found
