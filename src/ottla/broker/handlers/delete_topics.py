"""DeleteTopics: by name, or by id in the versions that have ids."""

from __future__ import annotations

from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.recent_deletions import RecentDeletions
from ottla.broker.request import RequestContext
from ottla.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidTopic,
    OttlaError,
    UnknownTopic,
    UnknownTopicId,
)
from ottla.model.ids import TopicId
from ottla.protocol.message import NO_UUID
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


class DeleteTopicsHandler:
    """Deletes topics."""

    def __init__(
        self,
        controller: Controller,
        view: ClusterView,
        deletions: RecentDeletions,
        *,
        is_enabled: bool,
    ) -> None:
        self._controller = controller
        self._view = view
        self._deletions = deletions
        self._is_enabled = is_enabled

    async def handle(
        self, request: DeleteTopicsRequest, _context: RequestContext
    ) -> DeleteTopicsResponse:
        if not self._is_enabled:
            return self.refuse(request, ErrorCode.TOPIC_DELETION_DISABLED)
        results: list[DeletableTopicResult] = []
        doomed: dict[str, DeletableTopicResult] = {}
        for wanted in _wanted(request):
            result = DeletableTopicResult(wanted.name, wanted.topic_id)
            results.append(result)
            try:
                name = self._name(wanted)
                topic = self._view.image.topics[name]
                result.name, result.topic_id = name, topic.id
                if topic.is_internal:
                    # Apache Kafka obeys here, and every group loses its offsets.
                    raise InvalidTopic(
                        f"{name} is an internal topic, which is not deleted; to forget what"
                        " a group has committed, delete the group"
                    )
                if name in doomed:
                    raise InvalidRequest("the request names this topic more than once")
            except OttlaError as error:
                result.error_code, result.error_message = error.code, str(error)
                continue
            doomed[name] = result
        await self._delete(doomed)
        return DeleteTopicsResponse(responses=results)

    def refuse(self, request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(wanted.name, wanted.topic_id, code, code.sentence)
                for wanted in _wanted(request)
            ]
        )

    async def _delete(self, doomed: dict[str, DeletableTopicResult]) -> None:
        failed = await self._controller.delete_topics(list(doomed))
        self._deletions.add(name for name in doomed if name not in failed)
        for name, error in failed.items():
            doomed[name].error_code, doomed[name].error_message = error.code, str(error)

    def _name(self, wanted: DeleteTopicState) -> str:
        image = self._view.image
        if wanted.name is not None:
            if wanted.topic_id != NO_UUID:
                raise InvalidRequest("a topic is named by its name or by its id, not by both")
            if wanted.name not in image.topics:
                raise UnknownTopic(wanted.name)
            return wanted.name
        topic = image.topic_by_id(TopicId(wanted.topic_id))
        if topic is None:
            raise UnknownTopicId(wanted.topic_id)
        return topic.name


def _wanted(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return [*request.topics, *(DeleteTopicState(name) for name in request.topic_names)]
