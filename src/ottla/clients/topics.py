"""Topics: create, list, add partitions, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.clients.client import ANY_BROKER, CONTROLLER, Client
from ottla.clients.failures import WrongUse, refusal
from ottla.clients.metadata import TopicInfo
from ottla.clients.outcome import Outcome, outcome
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import NO_TOPIC_ID, BrokerId
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

CHANGE_TIMEOUT_MS: Final = 30_000
BROKER_DEFAULT: Final = -1
"""As a count: whatever the broker is set to."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. Assignments, if given, say which brokers hold each partition."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What became of a topic to be created, with its counts (-1 where nobody says)."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    error: RequestFailed | None = None


def wanted_topic(given: object) -> NewTopic:
    """What somebody wrote for a topic to be made."""
    if isinstance(given, NewTopic):
        return given
    if isinstance(given, str):
        return NewTopic(given)
    raise WrongUse(
        f"{given!r} is neither a topic's name nor a NewTopic; of a list, give its items: *topics"
    )


async def create_topics(
    client: Client, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> list[CreatedTopic]:
    """Creates the topics, or only says whether they could be."""
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=CHANGE_TIMEOUT_MS,
        validate_only=validate_only,
    )
    # Version 4 is the first that takes -1 for the broker's own defaults.
    takes_defaults = 4 if any(BROKER_DEFAULT in _counts(topic) for topic in topics) else 1

    async def attempt() -> CreateTopicsResponse:
        return _no_controller_missed(
            await client.call(
                request, CreateTopicsResponse, to=CONTROLLER, at_least=takes_defaults
            ),
        )

    response = await client.retrying(attempt)
    return [
        CreatedTopic(
            result.name,
            result.num_partitions,
            result.replication_factor,
            outcome(result.name, result.error_code, result.error_message).error,
        )
        for result in response.topics
    ]


async def list_topics(
    client: Client, *, internal: bool = False, to: BrokerId = ANY_BROKER
) -> list[TopicInfo]:
    """All topics by name; internal ones on demand."""

    async def attempt() -> list[TopicInfo]:
        picture = await client.refresh(None, to=to)
        return [topic for topic in picture.topics.values() if internal or not topic.is_internal]

    return sorted(await client.retrying(attempt), key=lambda topic: topic.name)


async def describe_topic(client: Client, name: str) -> TopicInfo:
    """One topic as it is now."""

    async def attempt() -> TopicInfo:
        return await client.topic(name, refresh=True)

    return await client.retrying(attempt)


async def add_partitions(
    client: Client, name: str, count: int, *, validate_only: bool = False
) -> None:
    """Raises a topic's number of partitions to `count`."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=CHANGE_TIMEOUT_MS,
        validate_only=validate_only,
    )

    async def attempt() -> None:
        response = await client.call(request, CreatePartitionsResponse, to=CONTROLLER)
        for result in response.results:
            error = outcome(name, result.error_code, result.error_message).error
            if error is not None:
                raise error

    await client.retrying(attempt)


async def delete_topics(client: Client, names: Sequence[str]) -> list[Outcome]:
    """Deletes the topics with all their records."""
    for name in names:
        if not isinstance(name, str):
            raise WrongUse(f"{name!r} is not a topic's name; of a list, give its items: *names")
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=NO_TOPIC_ID) for name in names],
        topic_names=list(names),
        timeout_ms=CHANGE_TIMEOUT_MS,
    )

    async def attempt() -> DeleteTopicsResponse:
        response = await client.call(request, DeleteTopicsResponse, to=CONTROLLER)
        for result in response.responses:
            if result.error_code == ErrorCode.NOT_CONTROLLER:
                raise refusal(result.error_code, repr(result.name))
        return response

    response = await client.retrying(attempt)
    return [
        outcome(result.name or "", result.error_code, result.error_message)
        for result in response.responses
    ]


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if topic.assignments else topic.partition_count,
        replication_factor=BROKER_DEFAULT if topic.assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.assignments.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _counts(topic: NewTopic) -> tuple[int, ...]:
    return () if topic.assignments else (topic.partition_count, topic.replication_factor)


def _no_controller_missed(response: CreateTopicsResponse) -> CreateTopicsResponse:
    """Raises, so that the call is repeated elsewhere, if this is not the controller any more."""
    for result in response.topics:
        if result.error_code == ErrorCode.NOT_CONTROLLER:
            raise refusal(result.error_code, repr(result.name))
    return response
