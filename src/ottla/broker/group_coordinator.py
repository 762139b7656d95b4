"""The group coordinator's shards as the runtime wants them, and the duties that come with time."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterable
from typing import Final

from ottla.broker.cluster_follower import Difference
from ottla.broker.cluster_view import ClusterView
from ottla.broker.coordinator import Coordinator, InternalTopic
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.shard_runtime import ShardRuntime
from ottla.broker.skipped_records import SkippedRecords
from ottla.coordination.decision import NOTHING, Decision, NewRecord, Ticket, TimerKey
from ottla.coordination.group.shard import GroupShard
from ottla.errors import ErrorCode
from ottla.model.clock import Clock
from ottla.model.ids import TopicId
from ottla.records.batch import RecordBatch
from ottla.records.builder import ProducerStamp
from ottla.records.control import ControlType, read_marker
from ottla.settings.coordination import GroupSettings
from ottla.settings.group import OwnGroupSettings

OFFSETS_TOPIC: Final = "__consumer_offsets"

log = logging.getLogger(__name__)


class GroupTopics:
    """What groups ask about topics, answered from the newest image."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def partition_count(self, name: str) -> int | None:
        topic = self._view.image.topics.get(name)
        return None if topic is None else len(topic.partitions)

    def names(self) -> Iterable[str]:
        """Those that a pattern may match: with Apache Kafka the broker's own are among them."""
        return tuple(self._view.image.topics)

    def name_of(self, topic_id: TopicId) -> str | None:
        return self._view.image.topic_names.get(topic_id)

    def id_of(self, name: str) -> TopicId | None:
        topic = self._view.image.topics.get(name)
        return None if topic is None else topic.id


class GroupShardOnLog:
    """A group shard, fed from the log."""

    def __init__(self, shard: GroupShard) -> None:
        self.groups = shard

    def replay_batch(self, batch: RecordBatch, skipped: SkippedRecords) -> None:
        if batch.is_control:
            marker = read_marker(batch)
            if marker is not None:
                is_commit = marker.type is ControlType.COMMIT
                self.groups.replay_marker(batch.producer_id, is_commit)
            return
        producer_id = batch.producer_id if batch.is_transactional else -1
        for record in batch.records():
            try:
                self.groups.replay(record.key or b"", record.value, producer_id=producer_id)
            except Exception as error:  # whatever somebody wrote must not stop all other groups
                skipped.add(record.offset, error)

    def replay(self, record: NewRecord, producer: ProducerStamp) -> None:
        producer_id = producer.producer_id if producer.is_transactional else -1
        self.groups.replay_new(record, producer_id=producer_id)

    def append_failed(self, decision: Decision, code: ErrorCode) -> Decision:
        return self.groups.append_failed(decision, code)

    def timer_fired(self, key: TimerKey, now_ms: int) -> Decision:
        return self.groups.timer_fired(key, now_ms)

    def loaded(self, now_ms: int) -> Decision:
        return self.groups.on_loaded(now_ms)

    def forget(self, ticket: Ticket, now_ms: int) -> Decision:
        return self.groups.forget(ticket, now_ms)

    def committed(self, decision: Decision, runtime: ShardRuntime) -> None:
        """Nothing but replies rests on a group's decision."""


class GroupCoordinator(Coordinator[GroupShardOnLog]):
    """The coordinator of all groups that fall on this broker."""

    def __init__(self, partitions: Partitions, view: ClusterView, clock: Clock) -> None:
        settings = view.settings.groups
        topics = GroupTopics(view)
        offset_version_max = view.settings.replication.protocol_level.offset_value_version

        def own_settings(group_id: str) -> OwnGroupSettings:
            return OwnGroupSettings.from_overrides(view.image.group_configs(group_id), settings)

        def make_shard(_partition: Partition) -> GroupShardOnLog:
            return GroupShardOnLog(
                GroupShard(
                    settings,
                    topics,
                    new_member_id,
                    own_settings=own_settings,
                    offset_version_max=offset_version_max,
                )
            )

        topic = InternalTopic(
            OFFSETS_TOPIC,
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
            settings.offsets_commit_timeout_ms / 1000,
        )
        super().__init__(topic, make_shard, partitions, view, clock)

    def end_transaction(self, partition: int, producer_id: int, is_commit: bool) -> None:
        """A marker was written to a partition of offsets: they count from now on, or never."""
        running = self.at(partition)
        if running is not None and running.runtime.is_ready:  # else it will read the marker
            running.shard.groups.replay_marker(producer_id, is_commit)


def new_member_id(prefix: str) -> str:
    """An id that no member had before."""
    return f"{prefix}-{uuid.uuid4()}"


class GroupDuties:
    """What groups need done as time passes and topics come and go."""

    def __init__(
        self, coordinator: GroupCoordinator, settings: GroupSettings, clock: Clock
    ) -> None:
        self._coordinator = coordinator
        self._interval_seconds = settings.offsets_retention_check_interval_ms / 1000
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to expire offsets."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def topics_changed(self, found: Difference) -> None:
        """Offsets of topics that are gone go too, and groups share out what there is now."""
        deleted = [topic.name for topic in found.deleted]
        if not deleted and not found.changed:
            return
        now_ms = self._clock.now_ms()
        for running in self._coordinator:
            if not running.runtime.is_ready:
                continue
            groups = running.shard.groups
            if deleted:
                running.runtime.carry_out(groups.topics_deleted(deleted, now_ms))
            running.runtime.carry_out(groups.topics_changed(now_ms))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_seconds)
            for running in self._coordinator:
                groups = running.shard.groups
                while running.runtime.is_ready:
                    decision = groups.expire_offsets(self._clock.now_ms())
                    if decision == NOTHING or not running.runtime.carry_out(decision):
                        break
                    await asyncio.sleep(0)
