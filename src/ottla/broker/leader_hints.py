"""Tells a client that asked the wrong broker who leads: it need not ask around (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import Handler, Outcome, Parked, RequestContext, Running
from ottla.cluster.image import PartitionImage
from ottla.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages import fetch, produce
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.produce import ProduceResponse

_WRONG_BROKER: Final = frozenset(
    {int(ErrorCode.NOT_LEADER_OR_FOLLOWER), int(ErrorCode.FENCED_LEADER_EPOCH)}
)


class HintedApi(msgspec.Struct, frozen=True):
    """How the answers of one API carry hints."""

    version_min: int
    answers: Callable[[Any], Iterator[tuple[str, bytes, int, Any]]]
    """Of a response: topic name, topic id, partition and the answer about it."""
    leader: Callable[[int, int], Message]
    endpoint: Callable[[int, str, int, str | None], Message]


def _produced(response: ProduceResponse) -> Iterator[tuple[str, bytes, int, Any]]:
    for topic in response.responses:
        for answer in topic.partition_responses:
            yield topic.name, topic.topic_id, answer.index, answer


def _fetched(response: FetchResponse) -> Iterator[tuple[str, bytes, int, Any]]:
    for topic in response.responses:
        for answer in topic.partitions:
            yield topic.topic, topic.topic_id, answer.partition_index, answer


PRODUCE: Final = HintedApi(10, _produced, produce.LeaderIdAndEpoch, produce.NodeEndpoint)
FETCH: Final = HintedApi(16, _fetched, fetch.LeaderIdAndEpoch, fetch.NodeEndpoint)


class HintingHandler:
    """Answers as its handler does, with the leaders of what this broker does not lead."""

    def __init__(self, handler: Handler, view: ClusterView, api: HintedApi) -> None:
        self._handler = handler
        self._view = view
        self._api = api

    def handle(self, request: Any, context: RequestContext) -> Outcome:
        outcome = self._handler.handle(request, context)
        if outcome is None or context.version < self._api.version_min:
            return outcome
        if isinstance(outcome, Message):
            self._hint(outcome, context)
            return outcome
        if isinstance(outcome, Parked):
            return Parked(self._hinted(outcome.running, context))
        return self._hinted(outcome, context)

    async def _hinted(self, running: Running, context: RequestContext) -> Message | None:
        response = await running
        if response is not None:
            self._hint(response, context)
        return response

    def refuse(self, request: Any, code: ErrorCode) -> Message:
        return self._handler.refuse(request, code)

    def _hint(self, response: Any, context: RequestContext) -> None:
        leaders: set[int] = set()
        for name, topic_id, index, answer in self._api.answers(response):
            if answer.error_code not in _WRONG_BROKER:
                continue
            found = _partition(self._view, name, topic_id, index)
            if found is not None:
                answer.current_leader = self._api.leader(found.leader, found.leader_epoch)
                leaders.add(found.leader)
        if leaders:
            response.node_endpoints = [
                self._api.endpoint(broker.id, broker.host, broker.port, broker.rack)
                for broker in self._view.brokers(context.peer)
                if broker.id in leaders
            ]


def with_leader_hints(handlers: dict[ApiKey, Handler], view: ClusterView) -> dict[ApiKey, Handler]:
    """The handlers of a broker that others may lead beside."""
    return {
        **handlers,
        ApiKey.PRODUCE: HintingHandler(handlers[ApiKey.PRODUCE], view, PRODUCE),
        ApiKey.FETCH: HintingHandler(handlers[ApiKey.FETCH], view, FETCH),
    }


def _partition(view: ClusterView, name: str, topic_id: bytes, index: int) -> PartitionImage | None:
    """The partition, where somebody else leads it."""
    image = view.image
    topic = image.topics.get(name) or image.topic_by_id(TopicId(topic_id))
    found = image.partition(topic.name, index) if topic is not None else None
    if found is None or not found.has_leader or found.leader == view.broker_id:
        return None
    return found
