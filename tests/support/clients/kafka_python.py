"""kafka-python behind the face, optionally pinned to an old broker version."""

import time
from collections.abc import Mapping, Sequence

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import codec as kafka_codec

from support.clients.face import PLAINLY, Reading, Received, Sending, ToSend

WAIT_SECONDS_MAX = 30.0
CLOSE_SECONDS_MAX = 5.0

_CODECS = {
    "none": True,
    "gzip": True,
    "snappy": kafka_codec.has_snappy(),
    "lz4": kafka_codec.has_lz4(),
    "zstd": kafka_codec.has_zstd(),
}
CAN_WRITE_OLD_LZ4 = kafka_codec.xxhash is not None  # brokers before 0.10 wanted a wrong checksum


class KafkaPythonClient:
    """Produces and consumes through kafka-python."""

    name = "kafka-python"
    codecs = tuple(codec for codec, present in _CODECS.items() if present)
    sends_null_headers = False

    def __init__(self, bootstrap: str, api_version: tuple[int, ...] | None = None) -> None:
        self.bootstrap = bootstrap
        self.api_version = api_version

    def admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.bootstrap, api_version=self.api_version)

    def create_topic(
        self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        wish = {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}
        try:
            admin.create_topics({topic: wish}, wait_for_metadata=True)
        finally:
            admin.close()

    def produce(self, topic: str, records: Sequence[ToSend], how: Sending = PLAINLY) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            api_version=self.api_version,
            acks=how.acks,
            enable_idempotence=how.idempotent,
            compression_type=None if how.codec == "none" else how.codec,
            linger_ms=how.linger_ms,
            max_request_size=how.request_bytes_max,
            request_timeout_ms=int(WAIT_SECONDS_MAX * 1000),
            delivery_timeout_ms=int(WAIT_SECONDS_MAX * 1000) + how.linger_ms,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            producer.flush(WAIT_SECONDS_MAX)
            sent = [future.get(WAIT_SECONDS_MAX) for future in futures]
        finally:
            producer.close(timeout=CLOSE_SECONDS_MAX)
        return [metadata.offset if how.acks else -1 for metadata in sent]

    def consumer(self, how: Reading) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            api_version=self.api_version,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_bytes=how.fetch_bytes_max,
            max_partition_fetch_bytes=how.partition_bytes_max,
            fetch_max_wait_ms=how.wait_ms_max,
        )

    def consume(self, topic: str, starts: Mapping[int, int], how: Reading) -> list[Received]:
        consumer = self.consumer(how)
        received: list[Received] = []
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        try:
            consumer.assign([TopicPartition(topic, partition) for partition in starts])
            for partition, offset in starts.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            while len(received) < how.count and time.monotonic() < deadline:
                left = how.count - len(received)
                for records in consumer.poll(timeout_ms=1000, max_records=left).values():
                    received.extend(self._received(record) for record in records)
        finally:
            consumer.close()
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
        consumer, place = self.consumer(Reading(count=1)), TopicPartition(topic, partition)
        try:
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
        finally:
            consumer.close()
        return found.offset if found is not None else None

    def offset_range(self, topic: str, partition: int) -> tuple[int, int]:
        consumer, place = self.consumer(Reading(count=1)), TopicPartition(topic, partition)
        try:
            start = consumer.beginning_offsets([place])[place]
            end = consumer.end_offsets([place])[place]
        finally:
            consumer.close()
        return start, end
