"""Offsets of many partitions: as Spark's JSON, `{"topic": {"0": 23}}`, and as a mapping.

The JSON is that of Spark's own Kafka source, so that a person who knows one reads the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition

Offsets = dict[TopicPartition, int]
"""For partitions an offset each."""
TopicOffsets = dict[str, dict[str, int]]
"""The same as JSON has it."""
EARLIEST: Final = -2
LATEST: Final = -1


def to_topic_offsets(offsets: Mapping[TopicPartition, int]) -> TopicOffsets:
    """As JSON has it, in order."""
    found: TopicOffsets = {}
    for where in sorted(offsets):
        found.setdefault(where.topic, {})[str(where.partition)] = int(offsets[where])
    return found


def from_topic_offsets(topics: Mapping[str, Mapping[str, int]]) -> Offsets:
    """From what a checkpoint holds."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, rows in topics.items()
        for partition, offset in rows.items()
    }


def parse_offsets(option: str, text: str, *, least: int) -> Offsets:
    """From what a person wrote; `least` is the smallest number that means something."""
    found: Offsets = {}
    for topic, rows in _object(option, text).items():
        if not isinstance(rows, dict):
            raise ConfigError(option, f"{topic}: {rows!r} is not an object", _FORM)
        for partition, offset in rows.items():
            if not partition.isdecimal() or not isinstance(offset, int) or offset < least:
                raise ConfigError(option, f"{topic}: {partition!r}: {offset!r} is refused", _FORM)
            found[TopicPartition(topic, int(partition))] = offset
    return found


def parse_assignment(option: str, text: str) -> set[TopicPartition]:
    """The partitions of `{"topic": [0, 1]}`."""
    found: set[TopicPartition] = set()
    for topic, rows in _object(option, text).items():
        if not isinstance(rows, list) or not all(isinstance(p, int) and p >= 0 for p in rows):
            raise ConfigError(option, f"{topic}: {rows!r} is refused", _ASSIGNMENT_FORM)
        found.update(TopicPartition(topic, partition) for partition in rows)
    if not found:
        raise ConfigError(option, "names no partition", _ASSIGNMENT_FORM)
    return found


_FORM: Final = 'write it as {"topic": {"0": 23, "1": -2}}'
_ASSIGNMENT_FORM: Final = 'write it as {"topic": [0, 1]}'


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(
            option, f"{text!r} is not a JSON object of topics", "or earliest or latest"
        )
    return found
