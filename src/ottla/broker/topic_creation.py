"""Has topics created that this broker needs: by its own controller, or by asking the one elsewhere.

What was created is known here when the call returns, unless the news take very long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ottla.broker.cluster_follower import ClusterFollower
from ottla.broker.controller import Controller
from ottla.broker.peers import Peers
from ottla.cluster.changes import NewTopic
from ottla.cluster.image import ClusterImage, TopicImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode, OttlaError, RequestFailed, TopicExists
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

CREATE_MS_MAX: Final = 10_000
NEWS_SECONDS_MAX: Final = 2.0


class TopicCreation:
    """Creates topics wherever the controller is."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        controller: Controller,
        peers: Peers,
        follower: ClusterFollower,
    ) -> None:
        self._metadata = metadata
        self._controller = controller
        self._peers = peers
        self._follower = follower

    async def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool
    ) -> list[TopicImage | OttlaError]:
        """For each wish the topic, or why there is none."""
        if self._metadata.is_controller:
            return await self._controller.create_topics(wishes, validate_only=validate_only)
        request = CreateTopicsRequest([_wanted(wish) for wish in wishes], CREATE_MS_MAX)
        request.validate_only = validate_only
        response = await self._peers.ask_controller(request)
        assert isinstance(response, CreateTopicsResponse)
        codes = {each.name: ErrorCode.of(each.error_code) for each in response.topics}
        messages = {each.name: each.error_message for each in response.topics}
        made = [name for name, code in codes.items() if code is ErrorCode.NONE]
        if not validate_only:
            await self._heard_of(made)
        return [
            self._outcome(wish, codes.get(wish.name), messages.get(wish.name)) for wish in wishes
        ]

    async def create_missing_topics(self, names: Sequence[str]) -> dict[str, OttlaError]:
        """Creates topics that clients merely spoke of, with default settings; says what failed."""
        wishes = [NewTopic(name) for name in dict.fromkeys(names)]
        try:
            outcomes = await self.create_topics(wishes, validate_only=False)
        except OttlaError as error:
            return {wish.name: error for wish in wishes}
        return {
            wish.name: outcome
            for wish, outcome in zip(wishes, outcomes, strict=True)
            if isinstance(outcome, OttlaError) and not isinstance(outcome, TopicExists)
        }

    def _outcome(
        self, wish: NewTopic, code: ErrorCode | None, message: str | None
    ) -> TopicImage | OttlaError:
        if code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return TopicExists(wish.name)
        if code is not ErrorCode.NONE:
            return RequestFailed(code or ErrorCode.UNKNOWN_SERVER_ERROR, message or "")
        found = self._metadata.image.topics.get(wish.name)
        return found or RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE)

    async def _heard_of(self, names: Sequence[str]) -> None:
        """Returns when the picture has all these topics and this broker plays its part in them."""
        heard = asyncio.Event()

        def look(image: ClusterImage) -> None:
            if all(name in image.topics for name in names):
                heard.set()

        self._metadata.observers.append(look)
        try:
            look(self._metadata.image)
            async with asyncio.timeout(NEWS_SECONDS_MAX):
                await heard.wait()
                await self._follower.caught_up()
        except TimeoutError:
            return
        finally:
            self._metadata.observers.remove(look)


def _wanted(wish: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        wish.name,
        wish.partition_count,
        wish.replication_factor,
        [
            CreatableReplicaAssignment(index, list(brokers))
            for index, brokers in wish.assignments.items()
        ],
        [CreatableTopicConfig(name, value) for name, value in wish.configs.items()],
    )
