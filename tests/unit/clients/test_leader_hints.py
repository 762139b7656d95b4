"""A refusal that says who leads instead is followed at once, without a look at the cluster."""

import asyncio
from collections.abc import Callable

import pytest

from ottla.clients.address import Address
from ottla.clients.consumer.aio import Consumer
from ottla.clients.leader_hints import LeaderHint, newer, with_hint
from ottla.clients.metadata import BrokerInfo, ClusterPicture, PartitionInfo, TopicInfo
from ottla.clients.producer.aio import Producer
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages import fetch, produce
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.records.builder import build_batch
from ottla.records.record import Record

NEVER_MS = 60_000
OLD, NEW = 1, 2
PLACE = BrokerInfo(BrokerId(NEW), Address("there", 9))


def a_topic(*epochs: int, id_byte: bytes = b"t") -> TopicInfo:
    partitions = [
        PartitionInfo(number, BrokerId(OLD), LeaderEpoch(epoch))
        for number, epoch in enumerate(epochs)
    ]
    return TopicInfo("t", TopicId(id_byte * 16), False, tuple(partitions))


def a_hint(epoch: int, *, partition: int = 0, is_told_where: bool = True) -> LeaderHint:
    brokers = {BrokerId(NEW): PLACE} if is_told_where else {}
    return LeaderHint(TopicPartition("t", partition), BrokerId(NEW), LeaderEpoch(epoch), brokers)


def test_a_later_epoch_is_news() -> None:
    picture = with_hint(ClusterPicture(topics={"t": a_topic(3, 3)}), a_hint(4, partition=1))

    assert picture is not None
    leaders = [(each.leader, each.leader_epoch) for each in picture.topics["t"].partitions]
    assert leaders == [(OLD, 3), (NEW, 4)]
    assert picture.brokers[BrokerId(NEW)] == PLACE


@pytest.mark.parametrize(
    "hint",
    [a_hint(3), a_hint(2), a_hint(4, partition=7), a_hint(4, is_told_where=False)],
    ids=["same epoch", "earlier epoch", "no such partition", "a broker nobody knows"],
)
def test_what_is_no_news_changes_nothing(hint: LeaderHint) -> None:
    assert with_hint(ClusterPicture(topics={"t": a_topic(3)}), hint) is None


def test_metadata_from_earlier_does_not_bring_a_leader_back() -> None:
    known = with_hint(ClusterPicture(topics={"t": a_topic(3, 3)}), a_hint(5))
    assert known is not None

    merged = newer(known.topics["t"], a_topic(4, 4, 4))
    leaders = [(each.leader, each.leader_epoch) for each in merged.partitions]
    assert leaders == [(NEW, 5), (OLD, 4), (OLD, 4)]
    other = a_topic(0, id_byte=b"u")
    assert newer(known.topics["t"], other) is other


async def with_two_brokers(a_broker: type, work: Callable) -> int:
    """Runs with a broker that metadata calls the leader for ever, and the one that is.

    Returns how often the cluster was looked at during the work."""
    async with a_broker() as stale, a_broker() as leader:

        def metadata(request: Message, version: int) -> Message:
            answer = stale.metadata()
            answer.topics[0].partitions[0].leader_epoch = 3
            return answer

        stale.answers[ApiKey.METADATA] = metadata
        for broker in (stale, leader):
            broker.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, version: (
                InitProducerIdResponse(producer_id=7, producer_epoch=0)
            )
        await work(stale, leader)
        return len(stale.versions_seen(ApiKey.METADATA))


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"])
def test_a_producer_follows_the_leader_it_is_told(a_broker: type, error: str) -> None:
    async def work(stale, leader) -> None:  # type: ignore[no-untyped-def]
        def refuse(request: Message, version: int) -> Message:
            row = produce.PartitionProduceResponse(
                index=0,
                error_code=int(ErrorCode[error]),
                current_leader=produce.LeaderIdAndEpoch(leader_id=NEW, leader_epoch=4),
            )
            topic = produce.TopicProduceResponse(topic_id=b"t" * 16, partition_responses=[row])
            there = produce.NodeEndpoint(
                node_id=NEW, host=leader.address.host, port=leader.address.port
            )
            return produce.ProduceResponse(responses=[topic], node_endpoints=[there])

        def take(request: Message, version: int) -> Message:
            row = produce.PartitionProduceResponse(index=0, base_offset=41)
            topic = produce.TopicProduceResponse(topic_id=b"t" * 16, partition_responses=[row])
            return produce.ProduceResponse(responses=[topic])

        stale.answers[ApiKey.PRODUCE] = refuse
        leader.answers[ApiKey.PRODUCE] = take
        async with Producer(str(stale.address), retry_backoff_ms=NEVER_MS) as producer:
            async with asyncio.timeout(20):
                metadata = await producer.send_and_wait("t", b"value")
        assert metadata.offset == 41
        assert len(stale.versions_seen(ApiKey.PRODUCE)) == 1

    assert asyncio.run(with_two_brokers(a_broker, work)) == 1  # at the start


def test_a_consumer_follows_the_leader_it_is_told(a_broker: type) -> None:
    async def work(stale, leader) -> None:  # type: ignore[no-untyped-def]
        def refuse(request: Message, version: int) -> Message:
            row = fetch.PartitionData(
                partition_index=0,
                error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER),
                current_leader=fetch.LeaderIdAndEpoch(leader_id=NEW, leader_epoch=4),
            )
            topic = fetch.FetchableTopicResponse(topic_id=b"t" * 16, partitions=[row])
            there = fetch.NodeEndpoint(
                node_id=NEW, host=leader.address.host, port=leader.address.port
            )
            return fetch.FetchResponse(responses=[topic], node_endpoints=[there])

        def give(request: Message, version: int) -> Message:
            batch = build_batch([Record(0, 0, None, b"value")])
            row = fetch.PartitionData(partition_index=0, high_watermark=1, records=batch)
            topic = fetch.FetchableTopicResponse(topic_id=b"t" * 16, partitions=[row])
            return fetch.FetchResponse(responses=[topic])

        stale.answers[ApiKey.FETCH] = refuse
        leader.answers[ApiKey.FETCH] = give
        async with Consumer(
            bootstrap_servers=str(stale.address), retry_backoff_ms=2000
        ) as consumer:
            where = TopicPartition("t", 0)
            consumer.assign([where])
            consumer.seek(where, 0)
            async with asyncio.timeout(20):
                records = await consumer.poll(20.0)
        assert [record.value for record in records] == [b"value"]
        assert len(stale.versions_seen(ApiKey.FETCH)) == 1

    asyncio.run(with_two_brokers(a_broker, work))
