"""Turns a starting point into an offset a partition; brokers are asked where it is a moment."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cli.starting_point import StartingPoint, StartKind, resolve
from ottla.clients.client import Client
from ottla.clients.offsets import list_offsets
from ottla.model.ids import Offset


async def offsets_at(
    client: Client, topic: str, start: StartingPoint, ranges: Mapping[int, tuple[Offset, Offset]]
) -> dict[int, Offset]:
    """The offset at the starting point in each partition of `ranges`."""
    at_time: dict[int, Offset] = {}
    if start.kind is StartKind.TIME:
        listed = await list_offsets(client, topic, dict.fromkeys(ranges, start.number))
        at_time = {
            partition: found.offset for partition, found in listed.items() if found.offset >= 0
        }
    return resolve(start, ranges, at_time)
