"""Where a query without a checkpoint goes on: its group's offsets, and its changelogs' ends.

    take the transactional id over: ends what was left open, so that nothing changes any more
    the group's offsets │ the ends of the changelogs

Both were written by the same transactions, so they belong together: state as it was after exactly
the records before the offsets. Should somebody else run under the name meanwhile, its first commit
moves the group's offsets, and ours, which expects them unmoved, is refused.

A checkpoint in which no micro-batch is finished is as good as none: it is thrown away, since what
its first one has written may be in the changelogs by now, or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ottla.clients.blocking.loop_thread import LoopThread
from ottla.clients.client import Client
from ottla.clients.connection_settings import ConnectionSettings, client_for
from ottla.clients.group_offsets import committed_offsets
from ottla.clients.offsets import offset_ranges
from ottla.clients.producer.settings import ProducerSettings
from ottla.clients.producer.transaction import Transaction
from ottla.clients.settings_source import SettingsSource
from ottla.model.ids import TopicPartition
from ottla.spark.offsets import EARLIEST
from ottla.spark.sink_plan import Delivery
from ottla.streams.failures import TopologyError
from ottla.streams.spark.kept_stores import logged_stores
from ottla.streams.spark.restoring import changelog
from ottla.streams.spark.run_settings import RunSettings, query_name
from ottla.streams.topology import Subtopology, Topology

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where to go on. Empty: at the beginning, or where the checkpoint says."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    changelogs: Mapping[str, tuple[Bounds, ...]] = field(default_factory=dict)
    """Of every store with one, by partition, what is to be read of it."""


class Resuming:
    """Finds it out for the sub-topologies of one application."""

    __slots__ = ("_counts", "_settings", "_topology")

    def __init__(
        self, topology: Topology, settings: RunSettings, counts: Mapping[str, int]
    ) -> None:
        self._topology = topology
        self._settings = settings
        self._counts = counts

    def find(self, part: Subtopology) -> Resumption:
        """For a sub-topology that has no checkpoint."""
        loop = LoopThread("streams-resuming")
        try:
            found = loop.run(self._ask(part))
        finally:
            loop.stop()
        if found.offsets or self._settings.delivery is not Delivery.EXACTLY_ONCE:
            return found
        for store, bounds in found.changelogs.items():
            self._check_empty(store, bounds)
        return Resumption()

    async def _ask(self, part: Subtopology) -> Resumption:
        source = SettingsSource("streams", dict(self._settings.kafka), {})
        async with client_for(source.read(ConnectionSettings)) as client:
            if self._settings.delivery is Delivery.EXACTLY_ONCE:
                name = query_name(self._settings.app_id, part)
                producer = replace(source.read(ProducerSettings), transactional_id=name)
                transaction = Transaction(client, producer, lambda: None)
                await transaction.init()
                await transaction.close()
            offsets = await self._offsets(client, part)
            return Resumption(
                offsets,
                {spec.name: await self._bounds(client, spec.name) for spec in logged_stores(part)},
            )

    async def _offsets(self, client: Client, part: Subtopology) -> dict[TopicPartition, int]:
        """Of all partitions it reads, if the group has an offset of any."""
        app_id = self._settings.app_id
        topics = [self._topology.topic_name(topic, app_id) for topic in part.topics()]
        there = await committed_offsets(client, app_id, waits_for_transactions=True)
        known = {where: row.offset for where, row in there.items() if where.topic in topics}
        if not known:
            return {}
        every = [TopicPartition(name, n) for name in topics for n in range(self._counts[name])]
        return {where: known.get(where, EARLIEST) for where in every}

    async def _bounds(self, client: Client, store: str) -> tuple[Bounds, ...]:
        topic = self._topology.changelog_topic(store, self._settings.app_id)
        ranges = await offset_ranges(client, topic, range(self._counts[topic]), committed_only=True)
        return tuple(ranges[number] for number in range(self._counts[topic]))

    def _check_empty(self, store: str, bounds: tuple[Bounds, ...]) -> None:
        app_id = self._settings.app_id
        topic = self._topology.changelog_topic(store, app_id)
        for number, each in enumerate(bounds):
            where = TopicPartition(topic, number)
            if next(changelog(where, each, self._settings.kafka), None) is not None:
                raise TopologyError(
                    f"there is state in {topic!r}, but neither a checkpoint in "
                    f"{self._settings.checkpoint} nor offsets of the group {app_id!r} say which "
                    "records it is of: bring the checkpoint back, use another app_id, or delete "
                    "the application's changelog and repartition topics to begin anew"
                )
