"""Moves of partitions as a JSON document, in the form that Kafka's own tool reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from ottla.cli.cluster_plan import Assignment
from ottla.errors import ConfigError
from ottla.model.ids import BrokerId, TopicPartition

VERSION: Final = 1
_FORM: Final = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}'


@dataclass(frozen=True, slots=True)
class _Row:
    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Document:
    partitions: list[_Row]
    version: int = VERSION


def as_json_text(assignment: Assignment) -> str:
    """The document for these partitions."""
    rows = [
        {"topic": each.topic, "partition": each.partition, "replicas": list(replicas)}
        for each, replicas in sorted(assignment.items())
    ]
    return msgspec.json.encode({"version": VERSION, "partitions": rows}).decode()


def parse(text: str | bytes) -> Assignment:
    """What a document says; ConfigError says what is wrong with it."""
    try:
        document = msgspec.json.decode(text, type=_Document)
    except msgspec.DecodeError as error:
        raise _wrong(str(error)) from None
    if document.version != VERSION:
        raise _wrong(f"version {document.version} is not known")
    found: Assignment = {}
    for row in document.partitions:
        partition = TopicPartition(row.topic, row.partition)
        if partition in found:
            raise _wrong(f"{partition} stands in it twice")
        if not row.replicas or len(set(row.replicas)) != len(row.replicas):
            raise _wrong(f"{partition} needs replicas, each broker once; it has {row.replicas}")
        if any(each != "any" for each in row.log_dirs):
            raise _wrong(f"{partition} names directories, which cannot be chosen here")
        found[partition] = tuple(BrokerId(each) for each in row.replicas)
    return found


def _wrong(problem: str) -> ConfigError:
    return ConfigError("reassignment", problem, f"write it as {_FORM}")
