"""CreateTopics: bring topics into being, or only say whether that would work."""

from __future__ import annotations

from collections import Counter

from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.cluster.changes import NewTopic
from ottla.cluster.image import TopicImage
from ottla.errors import ErrorCode, InvalidRequest, OttlaError
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.settings.describe import describe_topic


class CreateTopicsHandler:
    """Creates topics."""

    def __init__(self, controller: Controller, view: ClusterView) -> None:
        self._controller = controller
        self._view = view

    async def handle(
        self, request: CreateTopicsRequest, _context: RequestContext
    ) -> CreateTopicsResponse:
        named = Counter(topic.name for topic in request.topics)
        wishes = [_wish(topic) for topic in request.topics if named[topic.name] == 1]
        outcomes = await self._controller.create_topics(wishes, validate_only=request.validate_only)
        results = [self._result(wish, made) for wish, made in zip(wishes, outcomes, strict=True)]
        twice = InvalidRequest("the request names this topic more than once")
        results += [_failed(name, twice) for name, count in named.items() if count > 1]
        return CreateTopicsResponse(topics=results)

    def refuse(self, request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(
                    topic.name, error_code=code, error_message=code.sentence, configs=None
                )
                for topic in request.topics
            ]
        )

    def _result(self, wish: NewTopic, outcome: TopicImage | OttlaError) -> CreatableTopicResult:
        if isinstance(outcome, OttlaError):
            return _failed(wish.name, outcome)
        return CreatableTopicResult(
            outcome.name,
            outcome.id,
            0,
            None,
            num_partitions=len(outcome.partitions),
            replication_factor=len(outcome.partitions[0].replicas),
            configs=[
                CreatableTopicConfigs(
                    setting.name,
                    setting.value,
                    setting.is_read_only,
                    setting.source,
                    setting.is_sensitive,
                )
                for setting in describe_topic(outcome.configs, self._view.layers)
            ],
        )


def _wish(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {each.partition_index: tuple(each.broker_ids) for each in topic.assignments},
        {config.name: config.value for config in topic.configs if config.value is not None},
    )


def _failed(name: str, error: OttlaError) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=error.code, error_message=str(error), configs=None)
