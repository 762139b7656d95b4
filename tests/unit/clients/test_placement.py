"""Topics and moves that fit together, though brokers know of a move's end at different times."""

import asyncio

from ottla.clients.client import Client, ClientOptions
from ottla.clients.metadata import TopicInfo
from ottla.clients.placement import look_at_placement
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

MOVE = ListPartitionReassignmentsResponse(
    topics=[
        OngoingTopicReassignment(
            name="t",
            partitions=[
                OngoingPartitionReassignment(
                    partition_index=0,
                    replicas=[3, 1, 2],
                    adding_replicas=[3],
                    removing_replicas=[2],
                )
            ],
        )
    ]
)
NO_MOVE = ListPartitionReassignmentsResponse()


def replicas_of(topic: TopicInfo) -> list[int]:
    return list(topic.partitions[0].replicas)


def picture(brokers: list[MetadataResponseBroker], replicas: list[int]) -> MetadataResponse:
    row = MetadataResponsePartition(
        partition_index=0, leader_id=1, replica_nodes=replicas, isr_nodes=replicas
    )
    topic = MetadataResponseTopic(name="t", topic_id=b"t" * 16, partitions=[row])
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=2, topics=[topic])


def test_replicas_are_the_controllers_word_where_another_broker_is_behind(
    a_broker, quick: ClientOptions
) -> None:
    async def main() -> None:
        async with a_broker() as behind, a_broker() as controller:
            brokers = [
                MetadataResponseBroker(node_id=number, host=it.address.host, port=it.address.port)
                for number, it in ((1, behind), (2, controller))
            ]
            behind.answers[ApiKey.METADATA] = lambda *_: picture(brokers, [3, 1, 2])
            controller.answers[ApiKey.METADATA] = lambda *_: picture(brokers, [3, 1])
            controller.answers[ApiKey.LIST_PARTITION_REASSIGNMENTS] = lambda *_: NO_MOVE
            async with Client([behind.address], quick) as client:
                found = await look_at_placement(client)
            assert [replicas_of(topic) for topic in found.topics] == [[3, 1]]
            assert found.moves == []

    asyncio.run(main())


def test_a_move_that_ends_or_begins_while_it_is_asked_about_counts_as_one(
    a_broker, quick: ClientOptions
) -> None:
    async def main(answers: list[Message]) -> None:
        async with a_broker() as broker:
            told = iter(answers)
            broker.answers[ApiKey.LIST_PARTITION_REASSIGNMENTS] = lambda *_: next(told)
            async with Client([broker.address], quick) as client:
                found = await look_at_placement(client)
            assert [list(move.removing) for move in found.moves] == [[2]]

    asyncio.run(main([MOVE, NO_MOVE]))
    asyncio.run(main([NO_MOVE, MOVE]))
