"""aiokafka behind the face; every call runs its own event loop."""

import asyncio
from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from support.clients.face import PLAINLY, Reading, Received, Sending, ToSend

WAIT_SECONDS_MAX = 30.0


class AioKafkaClient:
    """Produces and consumes through aiokafka."""

    name = "aiokafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def create_topic(
        self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        asyncio.run(self._create_topic(topic, partitions, dict(configs or {})))

    async def _create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            wish = NewTopic(topic, partitions, 1, topic_configs=configs)
            answer = await admin.create_topics([wish])
            assert answer.topic_errors[0][1] == 0, answer
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                while (await admin.describe_topics([topic]))[0]["error_code"] != 0:
                    pass
        finally:
            await admin.close()

    def produce(self, topic: str, records: Sequence[ToSend], how: Sending = PLAINLY) -> list[int]:
        return asyncio.run(self._produce(topic, records, how))

    async def _produce(self, topic: str, records: Sequence[ToSend], how: Sending) -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            acks=how.acks,
            enable_idempotence=how.idempotent,
            compression_type=None if how.codec == "none" else how.codec,
            linger_ms=how.linger_ms,
            max_request_size=how.request_bytes_max,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            sent = await asyncio.wait_for(asyncio.gather(*futures), WAIT_SECONDS_MAX)
        finally:
            await producer.stop()
        return [metadata.offset if how.acks else -1 for metadata in sent]

    def consumer(self, how: Reading) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_bytes=how.fetch_bytes_max,
            max_partition_fetch_bytes=how.partition_bytes_max,
            fetch_max_wait_ms=how.wait_ms_max,
        )

    def consume(self, topic: str, starts: Mapping[int, int], how: Reading) -> list[Received]:
        return asyncio.run(self._consume(topic, starts, how))

    async def _consume(self, topic: str, starts: Mapping[int, int], how: Reading) -> list[Received]:
        consumer = self.consumer(how)
        await consumer.start()
        received: list[Received] = []
        try:
            consumer.assign([TopicPartition(topic, partition) for partition in starts])
            for partition, offset in starts.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            while len(received) < how.count:
                record = await asyncio.wait_for(consumer.getone(), WAIT_SECONDS_MAX)
                received.append(self._received(record))
        finally:
            await consumer.stop()
        return received

    @staticmethod
    def _received(record: object) -> Received:
        return Received(
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
            timestamp_ms=record.timestamp,
            timestamp_type=record.timestamp_type,
        )

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        return asyncio.run(self._offset_at(TopicPartition(topic, partition), timestamp_ms))

    async def _offset_at(self, place: TopicPartition, timestamp_ms: int) -> int | None:
        consumer = self.consumer(Reading(count=1))
        await consumer.start()
        try:
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
        finally:
            await consumer.stop()
        return found.offset if found is not None else None

    def offset_range(self, topic: str, partition: int) -> tuple[int, int]:
        return asyncio.run(self._offset_range(TopicPartition(topic, partition)))

    async def _offset_range(self, place: TopicPartition) -> tuple[int, int]:
        consumer = self.consumer(Reading(count=1))
        await consumer.start()
        try:
            start = (await consumer.beginning_offsets([place]))[place]
            end = (await consumer.end_offsets([place]))[place]
        finally:
            await consumer.stop()
        return start, end
