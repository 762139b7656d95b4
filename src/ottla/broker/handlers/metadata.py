"""Metadata: which brokers there are, and who leads the partitions of which topics."""

from __future__ import annotations

from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.recent_deletions import RecentDeletions
from ottla.broker.request import RequestContext
from ottla.broker.topic_creation import TopicCreation
from ottla.cluster.changes import objection_to_topic_name
from ottla.cluster.image import TopicImage
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import TopicId
from ottla.net.turns import Turns
from ottla.protocol.message import NO_UUID
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

CREATED_AT_ONCE_MAX: Final = 500
"""How many unknown topics one request brings into being."""
FIRST_VERSION_WITH_TOPIC_IDS: Final = 12


class MetadataHandler:
    """Describes the cluster; may create a topic that a client speaks of."""

    def __init__(
        self,
        view: ClusterView,
        creation: TopicCreation,
        deletions: RecentDeletions,
        *,
        may_create: bool,
        turns: Turns | None = None,
    ) -> None:
        self._view = view
        self._creation = creation
        self._deletions = deletions
        self._may_create = may_create
        self._turns = turns or Turns()

    async def handle(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        topics = request.topics
        if topics is None or (context.version == 0 and not topics):
            described = [_topic(topic) for topic in self._view.image.topics.values()]
        else:
            if context.version < FIRST_VERSION_WITH_TOPIC_IDS:
                _check_named(topics, context.version)
            may_create = self._may_create and request.allow_auto_topic_creation
            missing = self._missing(topics) if may_create else []
            failed: dict[str, OttlaError] = {}
            if missing:
                failed = await self._creation.create_missing_topics(missing[:CREATED_AT_ONCE_MAX])
                # A client that is told this asks again, and others get their turn in between.
                later = RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE)
                failed |= dict.fromkeys(missing[CREATED_AT_ONCE_MAX:], later)
            described = await self._describe(topics, failed)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(broker.id, broker.host, broker.port, broker.rack)
                for broker in self._view.brokers(context.peer)
            ],
            cluster_id=self._view.image.cluster_id,
            controller_id=self._view.image.controller_id,
            topics=described,
        )

    def refuse(self, request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
        return MetadataResponse(
            topics=[
                MetadataResponseTopic(code, wanted.name or "", wanted.topic_id)
                for wanted in request.topics or []
            ],
            error_code=code,
        )

    async def _describe(
        self, topics: list[MetadataRequestTopic], failed: dict[str, OttlaError]
    ) -> list[MetadataResponseTopic]:
        described = []
        turn = self._turns.begin()
        for wanted in topics:
            described.append(self._described(wanted, failed))
            if turn.is_over:
                await turn.give_way()
        return described

    def _missing(self, topics: list[MetadataRequestTopic]) -> list[str]:
        """What may be created. Users of a deleted topic hear of it once before it comes anew."""
        known = self._view.image.topics
        return [
            wanted.name
            for wanted in topics
            if wanted.name and wanted.name not in known and not self._deletions.forget(wanted.name)
        ]

    def _described(
        self, wanted: MetadataRequestTopic, failed: dict[str, OttlaError]
    ) -> MetadataResponseTopic:
        image = self._view.image
        if wanted.name is None or (not wanted.name and wanted.topic_id != NO_UUID):
            found = image.topic_by_id(TopicId(wanted.topic_id))
            if found is None:
                return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
            return _topic(found)
        topic = image.topics.get(wanted.name)
        if topic is not None:
            return _topic(topic)
        error = failed.get(wanted.name) or objection_to_topic_name(wanted.name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is None else error.code
        return MetadataResponseTopic(code, wanted.name)


def _check_named(topics: list[MetadataRequestTopic], version: int) -> None:
    """Refuses, as Apache Kafka does: answers of these versions have no place for a null name."""
    for wanted in topics:
        if wanted.name is None or wanted.topic_id != NO_UUID:
            raise RequestFailed(
                ErrorCode.INVALID_REQUEST,
                f"Metadata version {version} asks by name; a topic id needs version 12",
            )


def _topic(topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        0,
        topic.name,
        topic.id,
        topic.is_internal,
        [
            MetadataResponsePartition(
                0 if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                index,
                partition.leader,
                partition.leader_epoch,
                list(partition.replicas),
                list(partition.isr),
            )
            for index, partition in enumerate(topic.partitions)
        ],
    )
