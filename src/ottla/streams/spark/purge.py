"""Deletes records of repartition topics that were read and are done, now and then.

A repartition topic has no retention: what is in it is needed until it was used, and never after.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final

from ottla.clients.blocking.loop_thread import LoopThread
from ottla.clients.connection_settings import ConnectionSettings, client_for
from ottla.clients.group_offsets import by_topic
from ottla.clients.offsets import delete_records
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition

INTERVAL_S: Final = 30.0
"""As often as Kafka Streams does (repartition.purge.interval.ms)."""
_WAIT_S: Final = 10.0
_log = logging.getLogger("ottla.streams")


class Purge:
    """How far topics were purged, and when that may be done again. Trouble is only reported."""

    __slots__ = ("_connection", "_due_s", "_purged", "_topics")

    def __init__(self, topics: Iterable[str], connection: ConnectionSettings) -> None:
        self._topics = frozenset(topics)
        self._connection = connection
        self._purged: dict[TopicPartition, int] = {}
        self._due_s = 0.0

    def up_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Deletes what lies before these offsets, unless it is too early to do so again."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        wanted = purgeable(self._topics, offsets, self._purged)
        if not wanted:
            return
        self._due_s = now_s + INTERVAL_S
        try:
            self._delete(wanted)
            self._purged.update(wanted)
        except OttlaError as error:
            _log.warning("repartition topics are not purged: %s", error)

    def _delete(self, offsets: Mapping[TopicPartition, int]) -> None:
        loop = LoopThread("streams-purge")
        try:
            loop.run(_deleted(self._connection, offsets))
        finally:
            loop.stop()


def purgeable(
    topics: frozenset[str],
    offsets: Mapping[TopicPartition, int],
    purged: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where there is more to delete than was."""
    return {
        where: offset
        for where, offset in offsets.items()
        if where.topic in topics and offset > purged.get(where, 0)
    }


async def _deleted(connection: ConnectionSettings, offsets: Mapping[TopicPartition, int]) -> None:
    async with client_for(connection, total_s=_WAIT_S) as client:
        for topic, rows in by_topic(offsets).items():
            await delete_records(client, topic, {row.partition: offsets[row] for row in rows})
