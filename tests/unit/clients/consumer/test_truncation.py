"""A consumer whose partition has a new leader with another history (KIP-320)."""

import asyncio

import pytest

from ottla.clients.consumer.aio import Consumer
from ottla.clients.failures import LogTruncated
from ottla.model.ids import TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.records.batch import RecordBatch
from ottla.records.builder import build_batch
from ottla.records.record import Record

PLACE = TopicPartition("t", 0)


class TwoHistories:
    """Ten records of epoch 0; from the change on only four of them, and others of epoch 1."""

    def __init__(self, broker) -> None:
        self.broker = broker
        self.epoch = 0
        broker.answers[ApiKey.METADATA] = lambda request, version: self.metadata()
        broker.answers[ApiKey.FETCH] = lambda request, version: self.fetch(request)
        broker.answers[ApiKey.LIST_OFFSETS] = lambda request, version: self.list_offsets()
        broker.answers[ApiKey.OFFSET_FOR_LEADER_EPOCH] = lambda request, version: self.epochs()

    def metadata(self) -> Message:
        message = self.broker.metadata()
        for partition in message.topics[0].partitions:
            partition.leader_epoch = self.epoch
        return message

    def list_offsets(self) -> Message:
        row = ListOffsetsPartitionResponse(partition_index=0, offset=0)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])

    def epochs(self) -> Message:
        row = EpochEndOffset(partition=0, leader_epoch=0, end_offset=4)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic="t", partitions=[row])]
        )

    def fetch(self, request: Message) -> Message:
        assert isinstance(request, FetchRequest)
        asked = request.topics[0].partitions[0]
        offset = asked.fetch_offset
        row = PartitionData(partition_index=0, high_watermark=12)
        if asked.current_leader_epoch < self.epoch:
            row.error_code = 74  # FENCED_LEADER_EPOCH
        elif offset < (10 if self.epoch == 0 else 12):
            text = b"new" if self.epoch and offset >= 4 else b"old"
            data = build_batch([Record(0, 0, None, text)], base_offset=offset)
            RecordBatch(memoryview(data)).assign(offset, 1 if text == b"new" else 0)
            row.records = memoryview(bytes(data))
        return FetchResponse(
            responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=[row])]
        )


async def read(consumer: Consumer, count: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += [(record.offset, record.value) for record in await consumer.poll(1.0)]
    return found


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_a_truncation_is_noticed_and_reading_goes_on_where_histories_part(
    a_broker: type, policy: str
) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            histories = TwoHistories(broker)
            async with Consumer(
                bootstrap_servers=str(broker.address),
                auto_offset_reset=policy,
                retry_backoff_ms=5,
                fetch_max_wait_ms=5,
            ) as consumer:
                consumer.assign([PLACE])
                consumer.seek(PLACE, 0)
                assert await read(consumer, 10) == [(n, b"old") for n in range(10)]
                histories.epoch = 1
                if policy == "none":
                    with pytest.raises(LogTruncated) as raised:
                        await read(consumer, 1)
                    assert raised.value.diverged == {PLACE: (10, 4)}
                assert await read(consumer, 3) == [(4, b"new"), (5, b"new"), (6, b"new")]

    asyncio.run(main())
