"""A consumer's polls against answers of every kind: moving on, trouble that passes or does not."""

import asyncio
import struct
from collections.abc import Callable

import pytest

from ottla.clients.consumer.aio import Consumer
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.records.batch import CONTROL_BIT
from ottla.records.builder import BatchBuilder, ProducerStamp, build_batch
from ottla.records.record import Record

END = 10
ABORT, COMMIT = 0, 1
QUICK = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2, "fetch_max_wait_ms": 10}
Errors = dict[int, ErrorCode]


def the_log(offset: int) -> bytes:
    """Up to three records from `offset` on, of a log that ends at END."""
    records = [Record(0, 0, None, b"%d" % n) for n in range(offset, min(offset + 3, END))]
    return bytes(build_batch(records, base_offset=offset)) if records else b""


def a_batch(first: int, count: int, producer_id: int) -> bytes:
    stamp = ProducerStamp(producer_id, 0, 0, is_transactional=True)
    records = [Record(0, 0, None, b"") for _ in range(count)]
    return bytes(build_batch(records, base_offset=first, producer=stamp))


def a_marker(offset: int, producer_id: int, kind: int) -> bytes:
    builder = BatchBuilder()
    builder.append(1000, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    stamp = ProducerStamp(producer_id, 0, -1, is_transactional=True)
    return bytes(builder.build(base_offset=offset, producer=stamp, attributes=CONTROL_BIT))


def fetched(
    request: FetchRequest, errors: Errors | None = None, log: Callable[[int], bytes] = the_log
) -> FetchResponse:
    rows = []
    for asked in request.topics[0].partitions if request.topics else ():
        error = (errors or {}).get(asked.partition, ErrorCode.NONE)
        rows.append(
            PartitionData(
                partition_index=asked.partition,
                error_code=int(error),
                high_watermark=END,
                last_stable_offset=END,
                records=None if error else memoryview(log(asked.fetch_offset)),
            )
        )
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=rows)])


async def read_all(broker, start: dict[int, int], **how: object) -> dict[int, list[int]]:
    """Every offset by partition, until all are at the end."""
    seen: dict[int, list[int]] = {partition: [] for partition in start}
    places = {TopicPartition("t", partition): offset for partition, offset in start.items()}
    settings = {**QUICK, "auto_offset_reset": "none", **how}
    async with Consumer(bootstrap_servers=str(broker.address), **settings) as consumer:
        consumer.assign(places)
        for where, offset in places.items():
            consumer.seek(where, offset)
        async with asyncio.timeout(30):
            while any([await consumer.position(where) < END for where in places]):
                for record in await consumer.poll(0.05):
                    seen[record.partition].append(record.offset)
    return seen


def test_every_record_comes_once_and_in_order(a_broker) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            broker.partition_count = 3
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(request)
            assert await read_all(broker, {0: 0, 1: 4, 2: END}) == {
                0: list(range(END)),
                1: list(range(4, END)),
                2: [],
            }

    asyncio.run(main())


@pytest.mark.parametrize(
    "trouble", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE, None]
)
def test_trouble_that_passes_is_not_seen(a_broker, trouble: ErrorCode | None) -> None:
    """None stands for a connection that the broker closes."""

    async def main() -> None:
        async with a_broker() as broker:
            calls = iter(range(1000))

            def answer(request: FetchRequest, version: int) -> FetchResponse | None:
                if next(calls) not in (1, 2):
                    return fetched(request)
                return None if trouble is None else fetched(request, {0: trouble})

            broker.answers[ApiKey.FETCH] = answer
            assert await read_all(broker, {0: 0}) == {0: list(range(END))}

    asyncio.run(main())


def test_trouble_in_one_partition_does_not_lose_what_came_of_others(a_broker) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            broker.partition_count = 2
            calls = iter(range(1000))
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(
                request, {1: ErrorCode.NOT_LEADER_OR_FOLLOWER} if next(calls) == 0 else None
            )
            whole = list(range(END))
            assert await read_all(broker, {0: 0, 1: 0}) == {0: whole, 1: whole}

    asyncio.run(main())


def test_an_offset_that_is_gone_is_said_at_once(a_broker) -> None:
    async def main() -> None:
        async with a_broker() as broker:
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(
                request, {0: ErrorCode.OFFSET_OUT_OF_RANGE}
            )
            with pytest.raises(OttlaError) as caught:
                await read_all(broker, {0: 0})
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
            assert len(broker.versions_seen(ApiKey.FETCH)) == 1

    asyncio.run(main())


def test_a_batch_cut_off_by_the_size_limit_is_left_for_the_next_fetch(a_broker) -> None:
    async def main() -> None:
        async with a_broker() as broker:

            def cut(offset: int) -> bytes:
                following = the_log(offset + 3)
                return the_log(offset) + following[: offset * 9 + 1]

            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(request, log=cut)
            assert await read_all(broker, {0: 0}) == {0: list(range(END))}

    asyncio.run(main())


def test_a_producer_may_abort_twice_in_one_fetch(a_broker) -> None:
    log = (
        a_batch(0, 1, 7)
        + a_marker(1, 7, ABORT)
        + a_batch(2, 2, 7)
        + a_marker(4, 7, COMMIT)
        + a_batch(5, 1, 8)
        + a_batch(6, 1, 7)
        + a_marker(7, 7, ABORT)
        + a_marker(8, 8, COMMIT)
        + a_marker(9, 9, COMMIT)
    )
    aborted = [
        AbortedTransaction(producer_id=7, first_offset=6),
        AbortedTransaction(producer_id=7, first_offset=0),
    ]

    async def main() -> None:
        async with a_broker() as broker:

            def answer(request: FetchRequest, version: int) -> FetchResponse:
                response = fetched(request, log=lambda offset: log if offset == 0 else b"")
                for row in response.responses[0].partitions:
                    row.aborted_transactions = aborted
                return response

            broker.answers[ApiKey.FETCH] = answer
            read = await read_all(broker, {0: 0}, isolation_level="read_committed")
            assert read == {0: [2, 3, 5]}

    asyncio.run(main())
