"""CreatePartitions: give topics more partitions."""

from __future__ import annotations

from collections import Counter

from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, InvalidRequest, OttlaError
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


class CreatePartitionsHandler:
    """Adds partitions."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def handle(
        self, request: CreatePartitionsRequest, _context: RequestContext
    ) -> CreatePartitionsResponse:
        named = Counter(topic.name for topic in request.topics)
        results = []
        for topic in request.topics:
            result = CreatePartitionsTopicResult(topic.name)
            results.append(result)
            try:
                if named[topic.name] > 1:
                    raise InvalidRequest("the request names this topic more than once")
                assignments = topic.assignments
                await self._controller.add_partitions(
                    topic.name,
                    topic.count,
                    None if assignments is None else [each.broker_ids for each in assignments],
                    validate_only=request.validate_only,
                )
            except OttlaError as error:
                result.error_code, result.error_message = error.code, str(error)
        return CreatePartitionsResponse(results=results)

    def refuse(self, request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsTopicResult(topic.name, code, code.sentence)
                for topic in request.topics
            ]
        )
