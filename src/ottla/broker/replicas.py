"""Brings the partitions on this broker in line with the cluster's image."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.partition import Partition, Services
from ottla.broker.partitions import Partitions
from ottla.cluster.image import PartitionImage, TopicImage
from ottla.errors import ConfigError, OttlaError, StorageFailed
from ottla.model.ids import Offset, TopicPartition
from ottla.settings.topic import TopicSettings
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory
from ottla.storage.recovery import RecoveryReport

LOGS_PER_TURN: Final = 32
"""Logs made before other clients get a turn."""

log = logging.getLogger(__name__)


class Replicas:
    """The logs behind the partitions."""

    def __init__(
        self,
        partitions: Partitions,
        directory: LogDirectory,
        view: ClusterView,
        services: Services,
    ) -> None:
        self._partitions = partitions
        self._directory = directory
        self._view = view
        self._services = services
        self.lost: set[TopicPartition] = set()
        """Partitions in whose ISR this broker is, and whose logs were gone when it started."""

    async def create(self, topics: Iterable[TopicImage]) -> list[TopicImage]:
        """Opens the log of every partition of these topics that this broker holds; returns the
        topics of which one could not be opened."""
        made = 0
        failed: dict[str, TopicImage] = {}
        cut: list[tuple[TopicImage, Partition]] = []
        for topic in topics:
            settings = self.settings_of(topic)
            held = self._partitions.of_topic(topic.name)
            for index, image in enumerate(topic.partitions):
                if index in held or self._view.broker_id not in image.replicas:
                    continue
                try:
                    partition = self._open(topic, index, settings)
                    if partition.log.flusher.is_cut:
                        cut.append((topic, partition))
                        continue
                    partition.take_role(image)
                except (OttlaError, OSError) as error:
                    log.error("%s-%d cannot be opened: %s", topic.name, index, error)
                    failed[topic.name] = topic
                    continue
                self._partitions.add(partition)
                made += 1
                if not made % LOGS_PER_TURN:
                    await asyncio.sleep(0)
        failed |= await self._add_cut(cut)
        return list(failed.values())

    async def _add_cut(self, cut: list[tuple[TopicImage, Partition]]) -> dict[str, TopicImage]:
        """Adds partitions whose logs were found torn, once what was cut off is gone for good:
        synced all at once. The topics of which one cannot take its role."""
        failed: dict[str, TopicImage] = {}
        await asyncio.gather(*(self._services.flushes.sync(partition) for _, partition in cut))
        for topic, partition in cut:
            try:
                partition.take_role(topic.partitions[partition.id.partition])
            except (OttlaError, OSError) as error:
                log.error("%s cannot be opened: %s", partition.id, error)
                failed[topic.name] = topic
                continue
            self._partitions.add(partition)
        return failed

    def settle_unknown_logs(self) -> None:
        """Deletes the logs on the disk that the cluster has deleted or moved away; sets aside those
        that it does not know. Only a committed decision deletes a log."""
        for partition in self._directory.partitions():
            if self._belongs_here(partition):
                continue
            if not self._directory.holds_log(partition):
                log.warning("%s has no log in it and is left alone", self._path(partition))
                self._directory.ignore(partition)
            elif self._was_deleted(partition):
                log.info("%s was deleted meanwhile: its files will be removed", partition)
                self._directory.delete_log(partition)
            elif self._was_moved_away(partition):
                log.info("%s is held by other brokers now: its files will be removed", partition)
                self._directory.delete_log(partition)
            else:
                self._set_aside_stray(partition)

    def note_lost_logs(self) -> None:
        """Finds out of which partitions this broker has nothing, though it is in their ISR. It must
        leave it before anybody can elect it: others would cut their logs off to match."""
        for topic in self._view.image.topics.values():
            for image in topic.partitions:
                partition = TopicPartition(topic.name, image.index)
                if self._view.broker_id not in image.isr or len(image.isr) == 1:
                    continue
                if not self._directory.has_log(partition, topic.id):
                    self.lost.add(partition)
                    where = self._path(partition)
                    log.error("%s is gone: it is fetched from other replicas", where)

    def _belongs_here(self, partition: TopicPartition) -> bool:
        image = self._view.image.partition(partition.topic, partition.partition)
        if image is None or self._view.broker_id not in image.replicas:
            return False
        topic_id = self._view.image.topics[partition.topic].id
        return self._directory.topic_id(partition) in (None, topic_id)

    def _was_deleted(self, partition: TopicPartition) -> bool:
        topic_id = self._directory.topic_id(partition)
        return topic_id is not None and topic_id in self._view.image.deleted_topics

    def _was_moved_away(self, partition: TopicPartition) -> bool:
        """Whether the metadata knows this very log and gave it to others since it was written."""
        image = self._view.image.partition(partition.topic, partition.partition)
        if image is None or self._view.broker_id in (*image.replicas, *image.isr):
            return False
        is_the_topic = (
            self._directory.topic_id(partition) == self._view.image.topics[partition.topic].id
        )
        return is_the_topic and image.leader_epoch >= self._directory.latest_epoch(partition)

    def _set_aside_stray(self, partition: TopicPartition) -> None:
        try:
            path = self._directory.set_aside_stray(partition)
        except OSError as error:
            where = self._path(partition)
            raise StorageFailed(
                f"{where} belongs to no topic and cannot be renamed ({error}): move it away"
            ) from error
        log.error(
            "%s belongs to no topic that the metadata knows, and no deletion is noted: its files"
            " are kept in %s. They come back if the topic does; `ottla log adopt` makes a topic of"
            " them",
            partition,
            path,
        )

    def _path(self, partition: TopicPartition) -> str:
        return self._directory.path(partition)

    def _open(self, topic: TopicImage, index: int, settings: TopicSettings) -> Partition:
        name = TopicPartition(topic.name, index)
        begins_at = Offset(0)
        if name in self._directory.lost:
            begins_at = self._begin_lost(name, topic.partitions[index])
        opened = self._directory.open_log(name, settings, topic_id=topic.id, begins_at=begins_at)
        _report(name, opened.report)
        if settings.flush_messages == 1:
            _sync(name, opened.log)
        opened.log.advance_high_watermark(self._directory.high_watermark(name))
        return Partition(name, topic.id, opened.log, self._services)

    def _begin_lost(self, partition: TopicPartition, image: PartitionImage) -> Offset:
        """Where to begin with a partition whose log is gone.

        Its offsets are not used again if there is no other copy. If others have a copy but none of
        them is in sync, nobody may lead: they would cut off what they have.
        """
        end = self._directory.lost[partition]
        where = self._path(partition)
        if image.replicas == (self._view.broker_id,):
            log.error("%s is gone, and with it all records before offset %d", where, end)
            return end
        if image.isr == (self._view.broker_id,):
            raise StorageFailed(
                f"{where} is gone, and no other replica is in sync: restore it from a copy and"
                " start again, or stop this broker and allow unclean elections of the topic"
            )
        return Offset(0)

    async def delete(self, topics: Iterable[TopicImage]) -> None:
        """Lets go of the topics' partitions. Their files are removed after a while, if it is noted
        that the topic was deleted; else they are kept."""
        for topic in topics:
            gone = self._partitions.remove_topic(topic.name)
            if topic.id in self._view.image.deleted_topics:
                await self._set_aside(gone)
            else:
                self._keep(gone)

    def _keep(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            partition.close()
            try:
                self._set_aside_stray(partition.id)
            except StorageFailed as error:
                log.error("%s", error)

    async def remove(self, taken_away: Iterable[Partition]) -> None:
        """Lets go of partitions that others hold now."""
        gone = list(taken_away)
        for partition in gone:
            log.info("%s is held by other brokers now: its files will be removed", partition.id)
            self._partitions.remove(partition)
        await self._set_aside(gone)

    def taken_away(self, topic: TopicImage) -> list[Partition]:
        """The partitions of a topic that this broker holds and should not any more.

        The controller takes a replica away in the same multi in which it gives the partition a new
        leader epoch. A picture with an older epoch, or one in which this broker is in sync, does
        not go together with a replica taken away: then nothing is deleted.
        """
        me = self._view.broker_id
        found = []
        for index, partition in self._partitions.of_topic(topic.name).items():
            if partition.topic_id != topic.id or index >= len(topic.partitions):
                continue
            image = topic.partitions[index]
            if me in image.replicas or me in image.isr:
                continue
            if image.leader_epoch >= partition.leader_epoch:
                found.append(partition)
        return found

    async def _set_aside(self, partitions: Iterable[Partition]) -> None:
        for count, partition in enumerate(partitions, start=1):
            partition.close()
            try:
                self._directory.delete_log(partition.id)
            except OSError as error:
                log.error("the files of %s stay until the next start: %s", partition.id, error)
            if not count % LOGS_PER_TURN:
                await asyncio.sleep(0)

    def configure(self, topics: Iterable[TopicImage]) -> None:
        """Lets changed settings take effect."""
        for topic in topics:
            settings = self.settings_of(topic)
            for partition in self._partitions.of_topic(topic.name).values():
                partition.log.configure(settings)

    def settings_of(self, topic: TopicImage) -> TopicSettings:
        """The topic's settings, over the broker's defaults as they are now."""
        broker = self._view.settings
        try:
            return TopicSettings.from_overrides(topic.configs, broker)
        except ConfigError as error:
            # Stored by another version perhaps: serving with defaults beats not serving.
            log.warning("settings of %s are ignored: %s", topic.name, error)
            return broker.topic_defaults


def _sync(partition: TopicPartition, opened: Log) -> None:
    """Syncs what a crash left unnoted: it was acknowledged, and must count as committed at once."""
    if opened.recovery_point == opened.end_offset:
        return
    job = opened.begin_flush()
    job.run()
    try:
        opened.finish_flush(job)
    except OttlaError as error:
        log.error("%s cannot be synced: %s", partition, error)


def _report(partition: TopicPartition, report: RecoveryReport) -> None:
    """Says what opening a log has changed; nothing is cut in silence."""
    if report.bytes_cut or report.segments_dropped:
        log.warning(
            "%s ended in the middle of a write: %d bytes and %d segments after it were cut",
            partition,
            report.bytes_cut,
            report.segments_dropped,
        )
    for sentence in report.lost:
        log.error("%s: %s", partition, sentence)
    for path in report.set_aside:
        log.error("%s: damaged data was set aside in %s", partition, path)
    for path in report.rebuilt:
        log.info("%s: rebuilt %s", partition, path)
