"""confluent-kafka (librdkafka) behind the face."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.clients.face import PLAINLY, Reading, Received, Sending, ToSend
from support.eventually import eventually

WAIT_SECONDS_MAX = 30.0


class ConfluentClient:
    """Produces and consumes through librdkafka."""

    name = "confluent-kafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    sends_null_headers = True

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def create_topic(
        self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        admin = self.admin()
        wish = NewTopic(topic, num_partitions=partitions, config=dict(configs or {}))
        admin.create_topics([wish])[topic].result(WAIT_SECONDS_MAX)

        def has_partitions() -> bool:
            found = admin.list_topics(topic, timeout=WAIT_SECONDS_MAX).topics[topic]
            return len(found.partitions) == partitions

        eventually(has_partitions, f"the partitions of {topic}")

    def produce(self, topic: str, records: Sequence[ToSend], how: Sending = PLAINLY) -> list[int]:
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": how.acks,
                "enable.idempotence": how.idempotent,
                "compression.type": how.codec or "none",
                "linger.ms": how.linger_ms,
                "message.max.bytes": how.request_bytes_max,
                "message.timeout.ms": int(WAIT_SECONDS_MAX * 1000),
            }
        )
        for index, record in enumerate(records):

            def delivered(error: KafkaError | None, message: Message, index: int = index) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offsets[index] = message.offset()

            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers) or None,
                timestamp=record.timestamp_ms or 0,
                on_delivery=delivered,
            )
            producer.poll(0)
        left = producer.flush(WAIT_SECONDS_MAX)
        if errors:
            raise KafkaException(errors[0])
        assert left == 0, f"{left} records were not delivered in time"
        return [offsets[index] if how.acks else -1 for index in range(len(records))]

    def consumer(self, how: Reading) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.max.bytes": how.fetch_bytes_max,
                "message.max.bytes": min(how.fetch_bytes_max, 1_000_000_000),
                "max.partition.fetch.bytes": how.partition_bytes_max,
                "fetch.wait.max.ms": how.wait_ms_max,
                "receive.message.max.bytes": how.fetch_bytes_max + 1024,
                "check.crcs": True,
            }
        )

    def consume(self, topic: str, starts: Mapping[int, int], how: Reading) -> list[Received]:
        consumer = self.consumer(how)
        consumer.assign([TopicPartition(topic, *start) for start in starts.items()])
        received: list[Received] = []
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        try:
            while len(received) < how.count and time.monotonic() < deadline:
                for message in consumer.consume(how.count - len(received), timeout=1.0):
                    if message.error():
                        raise KafkaException(message.error())
                    received.append(self._received(message))
        finally:
            consumer.close()
        return received

    @staticmethod
    def _received(message: Message) -> Received:
        timestamp_type, timestamp_ms = message.timestamp()
        return Received(
            partition=message.partition(),
            offset=message.offset(),
            key=message.key(),
            value=message.value(),
            headers=tuple(message.headers() or ()),
            timestamp_ms=timestamp_ms,
            timestamp_type=timestamp_type - 1,  # librdkafka counts "not available" as 0
        )

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self.consumer(Reading(count=1))
        try:
            (found,) = consumer.offsets_for_times(
                [TopicPartition(topic, partition, timestamp_ms)], timeout=WAIT_SECONDS_MAX
            )
        finally:
            consumer.close()
        return found.offset if found.offset >= 0 else None

    def offset_range(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self.consumer(Reading(count=1))
        try:
            place = TopicPartition(topic, partition)
            start, end = consumer.get_watermark_offsets(place, timeout=WAIT_SECONDS_MAX)
        finally:
            consumer.close()
        return start, end
