"""Tells a client that asked the wrong broker who leads: it need not ask around (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import Handler, RequestContext
from ottla.cluster.image import PartitionImage
from ottla.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages import fetch, produce
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse

PRODUCE_VERSION_MIN: Final = 10
FETCH_VERSION_MIN: Final = 16
_WRONG_BROKER: Final = frozenset(
    {int(ErrorCode.NOT_LEADER_OR_FOLLOWER), int(ErrorCode.FENCED_LEADER_EPOCH)}
)


class ProduceHints:
    """Answers a produce, with the leaders of what this broker does not lead."""

    def __init__(self, handler: Handler, view: ClusterView) -> None:
        self._handler = handler
        self._view = view

    async def handle(self, request: ProduceRequest, context: RequestContext) -> Message | None:
        response = await self._handler.handle(request, context)
        if isinstance(response, ProduceResponse) and context.version >= PRODUCE_VERSION_MIN:
            leaders: set[int] = set()
            for topic in response.responses:
                for answer in topic.partition_responses:
                    if answer.error_code not in _WRONG_BROKER:
                        continue
                    found = _partition(self._view, topic.name, topic.topic_id, answer.index)
                    if found is not None:
                        answer.current_leader = produce.LeaderIdAndEpoch(
                            found.leader, found.leader_epoch
                        )
                        leaders.add(found.leader)
            response.node_endpoints = [
                produce.NodeEndpoint(*each) for each in _endpoints(self._view, context, leaders)
            ]
        return response

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return self._handler.refuse(request, code)


class FetchHints:
    """Answers a fetch, with the leaders of what this broker does not lead."""

    def __init__(self, handler: Handler, view: ClusterView) -> None:
        self._handler = handler
        self._view = view

    async def handle(self, request: FetchRequest, context: RequestContext) -> Message | None:
        response = await self._handler.handle(request, context)
        if isinstance(response, FetchResponse) and context.version >= FETCH_VERSION_MIN:
            leaders: set[int] = set()
            for topic in response.responses:
                for answer in topic.partitions:
                    if answer.error_code not in _WRONG_BROKER:
                        continue
                    found = _partition(
                        self._view, topic.topic, topic.topic_id, answer.partition_index
                    )
                    if found is not None:
                        answer.current_leader = fetch.LeaderIdAndEpoch(
                            found.leader, found.leader_epoch
                        )
                        leaders.add(found.leader)
            response.node_endpoints = [
                fetch.NodeEndpoint(*each) for each in _endpoints(self._view, context, leaders)
            ]
        return response

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return self._handler.refuse(request, code)


def with_leader_hints(handlers: dict[ApiKey, Handler], view: ClusterView) -> dict[ApiKey, Handler]:
    """The handlers of a broker that others may lead beside."""
    return {
        **handlers,
        ApiKey.PRODUCE: ProduceHints(handlers[ApiKey.PRODUCE], view),
        ApiKey.FETCH: FetchHints(handlers[ApiKey.FETCH], view),
    }


def _partition(view: ClusterView, name: str, topic_id: bytes, index: int) -> PartitionImage | None:
    """The partition, where somebody else leads it."""
    image = view.image
    topic = image.topics.get(name) or image.topic_by_id(TopicId(topic_id))
    found = image.partition(topic.name, index) if topic is not None else None
    if found is None or not found.has_leader or found.leader == view.broker_id:
        return None
    return found


def _endpoints(
    view: ClusterView, context: RequestContext, leaders: set[int]
) -> Iterator[tuple[int, str, int, str | None]]:
    if leaders:
        for broker in view.brokers(context.peer):
            if broker.id in leaders:
                yield broker.id, broker.host, broker.port, broker.rack
