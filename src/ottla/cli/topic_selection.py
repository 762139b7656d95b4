"""Topics and their partitions on the command line: `orders`, `orders:0`, `orders:0,2,5-7`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import click

from ottla.clients.client import Client
from ottla.clients.failures import TopicNotFound
from ottla.model.ids import TopicPartition

PARTITIONS_MAX: Final = 100_000
"""In one range: more is a slip of the finger."""


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """A topic, and of its partitions some; None for all."""

    topic: str
    partitions: tuple[int, ...] | None = None


def parse_selection(text: str) -> TopicSelection:
    """Reads one selection; a usage error for anything else."""
    topic, colon, numbers = text.partition(":")
    if not topic:
        raise _wrong(text)
    if not colon:
        return TopicSelection(topic)
    partitions: list[int] = []
    for part in numbers.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise _wrong(text)
        end = int(last) if dash else int(first)
        if not int(first) <= end < int(first) + PARTITIONS_MAX:
            raise _wrong(text)
        partitions += range(int(first), end + 1)
    return TopicSelection(topic, tuple(dict.fromkeys(partitions)))


def matches(selections: Iterable[TopicSelection], partition: TopicPartition) -> bool:
    """Whether a selection names the partition; no selection at all names every one."""
    chosen = list(selections)
    return not chosen or any(
        each.topic == partition.topic
        and (each.partitions is None or partition.partition in each.partitions)
        for each in chosen
    )


async def select_partitions(
    client: Client, selections: Iterable[TopicSelection]
) -> list[TopicPartition]:
    """The partitions selected, in order; TopicNotFound where one is not there."""
    found: set[TopicPartition] = set()
    for selection in selections:
        name = selection.topic
        topic = await client.retrying(partial(client.topic, name))
        there = {row.partition for row in topic.partitions}
        for partition in there if selection.partitions is None else selection.partitions:
            if partition not in there:
                raise TopicNotFound(name, partition)
            found.add(TopicPartition(name, partition))
    return sorted(found)


def _wrong(text: str) -> click.UsageError:
    return click.UsageError(f"{text!r} names no partitions; write TOPIC or TOPIC:0,2,5-7.")
