"""What a consumer knows of the topics it reads."""

import asyncio

from ottla.clients.client import Client, ClientOptions
from ottla.clients.connection_settings import ConnectionSettings
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.consumer.subscription import Subscription
from ottla.clients.consumer.topic_watch import TopicWatch
from ottla.model.ids import TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message


def racks_seen(a_broker, quick: ClientOptions, rack: str | None) -> dict:
    """Of topic t, whose two partitions are on the only broker, which is in this rack."""

    async def main() -> dict:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.partition_count = 2
            plain = broker.answers[ApiKey.METADATA]

            def placed(request: Message, version: int) -> Message:
                response = plain(request, version)
                for each in response.brokers:
                    each.rack = rack
                for topic in response.topics:
                    for row in topic.partitions:
                        row.replica_nodes = [response.brokers[0].node_id, 99]
                return response

            broker.answers[ApiKey.METADATA] = placed
            settings = ConnectionSettings(), ConsumerSettings()
            watch = TopicWatch(client, Subscription(), *settings, lambda counts: None)
            assert await watch.counts(["t"]) == {"t": 2}
            return dict(watch.racks(["t", "never heard of"]))

    return asyncio.run(main())


def test_racks_of_partitions_are_those_of_the_brokers_that_are_there(a_broker, quick) -> None:
    here = frozenset({"x"})
    expected = {TopicPartition("t", 0): here, TopicPartition("t", 1): here}
    assert racks_seen(a_broker, quick, "x") == expected


def test_brokers_that_say_no_rack_leave_nothing_to_choose_by(a_broker, quick) -> None:
    assert racks_seen(a_broker, quick, None) == {}
