"""The pipeline at work: writes orders, reads what the pipeline makes of them, has both shown."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import Final

import msgspec

from ottla.aio import Consumer, Producer
from ottla.cli.demonstration.cafes import CAFES, WINDOW_MS, Served, WindowCount, orders
from ottla.cli.demonstration.dashboard import Dashboard, Moment
from ottla.cli.demonstration.pipeline_process import APP_ID, PipelineProcess
from ottla.cli.demonstration.tally import Tally
from ottla.cli.session import client_options, consumer_at, producer_at
from ottla.clients.address import Address
from ottla.clients.client import Client
from ottla.clients.groups import delete_groups, list_groups
from ottla.clients.topics import NewTopic, create_topics, delete_topics, list_topics
from ottla.model.ids import TopicPartition

CAFE_TABLE: Final = "demo-cafes"
ORDERS: Final = "demo-orders"
SERVED: Final = "demo-served"
COUNTS: Final = "demo-counts"
TOPICS: Final = (CAFE_TABLE, ORDERS, SERVED, COUNTS)
PARTITION_COUNT: Final = 1
"""Each partition is a task more for Spark, which a demonstration has to wait for."""
TIMEOUT_S: Final = 30.0
PAUSE_MEAN_S: Final = 0.1
ONCE_COUNT: Final = 60
"""So many orders are made where the demonstration ends by itself."""
ONCE_WAIT_S: Final = 540.0
LOOK_S: Final = 0.25
WINDOWS_CHECKED: Final = 30
SEED: Final = 1729


async def prepare_topics(address: Address) -> None:
    """The demonstration's own topics, empty: what an earlier one has left goes."""
    async with Client([address], client_options(TIMEOUT_S)) as client:
        await _forget_earlier(client)
        for created in await create_topics(client, [NewTopic(n, PARTITION_COUNT) for n in TOPICS]):
            if created.error:
                raise created.error
        for name in TOPICS:
            await client.wait_for_topic(name)


async def _forget_earlier(client: Client) -> None:
    """Deletes the topics and the groups, by which the pipeline would go on where it was."""
    groups = [group.id for group in await list_groups(client)]
    await delete_groups(client, [name for name in groups if name.startswith(APP_ID)])
    there = [topic.name for topic in await list_topics(client)]
    old = [name for name in there if name in TOPICS or name.startswith(f"{APP_ID}-")]
    for deleted in await delete_topics(client, old) if old else []:
        if deleted.error:
            raise deleted.error


async def show_pipeline(
    address: Address, pipeline: PipelineProcess, dashboard: Dashboard, *, once: bool
) -> Tally:
    """Shows orders and results until the pipeline ends; once, until all orders are dealt with."""
    tally = Tally()
    place = str(address)
    async with (
        producer_at(place, TIMEOUT_S, linger_ms=0) as producer,
        consumer_at(place, TIMEOUT_S, isolation_level="read_committed") as consumer,
    ):
        work = [
            asyncio.create_task(_order(producer, tally, ONCE_COUNT if once else None)),
            asyncio.create_task(_read(consumer, tally)),
        ]
        try:
            await _watch(tally, pipeline, dashboard, work, once=once)
        finally:
            for task in work:
                task.cancel()
    return tally


async def _watch(
    tally: Tally,
    pipeline: PipelineProcess,
    dashboard: Dashboard,
    work: list[asyncio.Task[None]],
    *,
    once: bool,
) -> None:
    begun_s = time.monotonic()
    while True:
        for task in work:
            if task.done():
                task.result()  # raises what went wrong
        elapsed_s = time.monotonic() - begun_s
        dashboard.show(Moment(elapsed_s, pipeline.report, tally))
        tally.forget_before(_now_ms() - WINDOWS_CHECKED * WINDOW_MS)
        is_done = tally.ordered == ONCE_COUNT and tally.is_complete
        if pipeline.has_ended or (once and (is_done or elapsed_s > ONCE_WAIT_S)):
            return
        await asyncio.sleep(LOOK_S)


async def _order(producer: Producer, tally: Tally, count: int | None) -> None:
    """Opens the cafés, then writes an order now and then; `count` of them, if that is given."""
    for name, cafe in CAFES.items():
        await producer.send(CAFE_TABLE, msgspec.json.encode(cafe), name.encode())
    await producer.flush()
    random = Random(SEED)
    for name, order in orders(random):
        await asyncio.sleep(random.expovariate(1 / PAUSE_MEAN_S))
        timestamp_ms = _now_ms()
        tally.add_order(name, order, timestamp_ms)
        value = msgspec.json.encode(order)
        await producer.send_and_wait(ORDERS, value, name.encode(), timestamp_ms=timestamp_ms)
        if order.order == count:
            return


async def _read(consumer: Consumer, tally: Tally) -> None:
    """Counts what the pipeline writes, from the topics' beginning on."""
    consumer.assign(
        TopicPartition(topic, number)
        for topic in (SERVED, COUNTS)
        for number in range(PARTITION_COUNT)
    )
    consumer.seek_to_beginning()
    while True:
        for record in await consumer.poll():
            value, name = record.value or b"", (record.key or b"").decode()
            if record.topic == SERVED:
                row = msgspec.json.decode(value, type=Served)
                tally.add_served(row, _now_ms() - record.timestamp_ms)
            else:
                tally.add_count(name, msgspec.json.decode(value, type=WindowCount))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
