"""A process that consumes, transforms and produces, each batch in one transaction with its offsets.

    python transform_app.py confluent|aiokafka BOOTSTRAP INSTANCE PROGRESS

INSTANCE is its place in the group and its transactional id, so that a successor takes both over.
It adds a byte to the file PROGRESS when it begins to work and after every commit.
"""

import asyncio
import os
import sys

INPUT, OUTPUT, GROUP = "input", "output", "transformers"
BATCH_RECORDS_MAX = 40
BATCH_SECONDS = 0.05
CALL_SECONDS_MAX = 25.0
FENCED_EXIT = 3


def transformed(partition: int, offset: int, value: bytes) -> bytes:
    """The function that the output is of the input."""
    return b"%d-%d %s" % (partition, offset, value[::-1])


def run_confluent(bootstrap: str, instance: str, progress: int) -> int:
    from confluent_kafka import Consumer, KafkaException, Producer

    quick = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "log_level": 0}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "group.instance.id": instance,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            **quick,
        }
    )
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": instance, "linger.ms": 0, **quick}
    )
    producer.init_transactions(CALL_SECONDS_MAX)
    consumer.subscribe([INPUT])
    os.write(progress, b"b")
    try:
        while True:
            messages = consumer.consume(BATCH_RECORDS_MAX, timeout=BATCH_SECONDS)
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
                value = transformed(message.partition(), message.offset(), message.value())
                producer.produce(OUTPUT, value, partition=message.partition())
            positions = consumer.position(consumer.assignment())
            group = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(positions, group, CALL_SECONDS_MAX)
            producer.commit_transaction(CALL_SECONDS_MAX)
            os.write(progress, b"c")
    except KafkaException as problem:
        if not problem.args[0].fatal():
            raise
        return FENCED_EXIT


async def run_aiokafka(bootstrap: str, instance: str, progress: int) -> int:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import ProducerFenced

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        retry_backoff_ms=20,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=instance, retry_backoff_ms=20
    )
    await consumer.start()
    await producer.start()
    # This client has no static membership: the partition of its own number is its share.
    consumer.assign([TopicPartition(INPUT, int(instance.rpartition("-")[2]))])
    os.write(progress, b"b")
    try:
        while True:
            found = await consumer.getmany(
                timeout_ms=int(BATCH_SECONDS * 1000), max_records=BATCH_RECORDS_MAX
            )
            if not found:
                continue
            async with producer.transaction():
                for place, messages in found.items():
                    for message in messages:
                        value = transformed(place.partition, message.offset, message.value)
                        await producer.send(OUTPUT, value, partition=place.partition)
                offsets = {place: messages[-1].offset + 1 for place, messages in found.items()}
                await producer.send_offsets_to_transaction(offsets, GROUP)
            os.write(progress, b"c")
    except ProducerFenced:
        return FENCED_EXIT


def main(arguments: list[str]) -> int:
    kind, bootstrap, instance, path = arguments
    progress = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    if kind == "confluent":
        return run_confluent(bootstrap, instance, progress)
    return asyncio.run(run_aiokafka(bootstrap, instance, progress))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
