"""The demonstration's first seconds: readings of thermometers, produced and consumed at once."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from ottla.aio import Consumer, Producer
from ottla.cli.demonstration.first_records_display import Delivery, DemoDisplay, open_display
from ottla.cli.session import client_options, consumer_at, producer_at
from ottla.clients.address import Address
from ottla.clients.client import Client
from ottla.clients.offsets import offset_ranges
from ottla.clients.topics import NewTopic, create_topics
from ottla.errors import ErrorCode
from ottla.model.ids import Offset, TopicPartition

TOPIC: Final = "demo"
PARTITION_COUNT: Final = 3
RECORD_COUNT: Final = 30
PACE_S: Final = 0.1
TIMEOUT_S: Final = 15.0
CITIES: Final = ("Oslo", "Lima", "Kyoto", "Cairo", "Perth", "Quito")


async def show_first_records(address: Address) -> None:
    """Produces and consumes some records, and shows each as it arrives."""
    ends = await _prepare(address)
    place = str(address)
    async with (
        producer_at(place, TIMEOUT_S, linger_ms=0) as producer,
        consumer_at(place, TIMEOUT_S) as consumer,
    ):
        consumer.assign(ends)
        for where, end in ends.items():
            consumer.seek(where, end)
        with open_display(RECORD_COUNT) as display:
            consuming = asyncio.create_task(_consume(consumer, display))
            try:
                await _produce(producer)
                await asyncio.wait_for(consuming, TIMEOUT_S)
            finally:
                consuming.cancel()


async def _prepare(address: Address) -> dict[TopicPartition, Offset]:
    """Creates the topic, unless an earlier demonstration has; returns where its partitions end."""
    async with Client([address], client_options(TIMEOUT_S)) as client:
        for created in await create_topics(client, [NewTopic(TOPIC, PARTITION_COUNT)]):
            if created.error and created.error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise created.error
        topic = await client.wait_for_topic(TOPIC)
        ranges = await offset_ranges(client, TOPIC, [row.partition for row in topic.partitions])
        return {TopicPartition(TOPIC, each): end for each, (_, end) in ranges.items()}


async def _produce(producer: Producer) -> None:
    """A reading of a thermometer ten times a second, keyed by its city."""
    for number in range(RECORD_COUNT):
        city = CITIES[number * 5 % len(CITIES)]
        celsius = 10 + (number * 7919 % 211) / 10
        value = f'{{"city": "{city}", "celsius": {celsius:.1f}}}'
        await producer.send_and_wait(TOPIC, value.encode(), city.encode())
        await asyncio.sleep(PACE_S)


async def _consume(consumer: Consumer, display: DemoDisplay) -> None:
    seen = 0
    while seen < RECORD_COUNT:
        records = await consumer.poll()
        now_ms = time.time_ns() // 1_000_000
        seen += len(records)
        for record in records:
            display.add(Delivery(record, now_ms - record.timestamp_ms))
