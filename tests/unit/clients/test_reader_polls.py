"""A reader's polls: moving on, trouble that passes, trouble that does not."""

import asyncio

import pytest

from ottla.clients.client import Client, ClientOptions
from ottla.clients.reader import Fetched, Reader
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import Offset
from ottla.protocol.api import ApiKey
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.records.builder import build_batch
from ottla.records.record import Record

END = 10


def the_log(offset: int) -> memoryview:
    """Up to three records from `offset` on, of a log that ends at END."""
    records = [Record(0, 0, None, b"%d" % n) for n in range(offset, min(offset + 3, END))]
    return memoryview(bytes(build_batch(records, base_offset=offset)) if records else b"")


def fetched(request: FetchRequest, errors: dict[int, ErrorCode] | None = None) -> FetchResponse:
    rows = []
    for asked in request.topics[0].partitions:
        error = (errors or {}).get(asked.partition, ErrorCode.NONE)
        rows.append(
            PartitionData(
                partition_index=asked.partition,
                error_code=int(error),
                high_watermark=END,
                records=None if error else the_log(asked.fetch_offset),
            )
        )
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=rows)])


async def read_all(reader: Reader) -> dict[int, list[int]]:
    """Every offset by partition, until all are at the end."""
    seen: dict[int, list[int]] = {}
    while reader.positions:
        for each in await reader.poll():
            seen.setdefault(each.partition, []).extend(record.offset for record in each.records)
            if each.next_offset >= each.end_offset:
                reader.stop(each.partition)
    await reader.close()
    return seen


def test_every_record_comes_once_and_in_order(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.partition_count = 3
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(request)
            start = {0: Offset(0), 1: Offset(4), 2: Offset(END)}
            assert await read_all(Reader(client, "t", start)) == {
                0: list(range(END)),
                1: list(range(4, END)),
                2: [],
            }

    asyncio.run(main())


@pytest.mark.parametrize(
    "trouble", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE, None]
)
def test_trouble_that_passes_is_not_seen(
    a_broker, quick: ClientOptions, trouble: ErrorCode | None
) -> None:
    """None stands for a connection that the broker closes."""

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            calls = iter(range(1000))

            def answer(request: FetchRequest, version: int) -> FetchResponse | None:
                if next(calls) not in (1, 2):
                    return fetched(request)
                return None if trouble is None else fetched(request, {0: trouble})

            broker.answers[ApiKey.FETCH] = answer
            assert await read_all(Reader(client, "t", {0: Offset(0)})) == {0: list(range(END))}

    asyncio.run(main())


def test_trouble_in_one_partition_does_not_lose_what_came_of_others(
    a_broker, quick: ClientOptions
) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.partition_count = 2
            calls = iter(range(1000))
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(
                request, {1: ErrorCode.NOT_LEADER_OR_FOLLOWER} if next(calls) == 0 else None
            )
            reader = Reader(client, "t", {0: Offset(0), 1: Offset(0)})
            (first,) = await reader.poll()
            assert (first.partition, first.next_offset) == (0, 3)
            assert await read_all(reader) == {0: list(range(3, END)), 1: list(range(END))}

    asyncio.run(main())


def test_trouble_that_does_not_pass_is_raised_in_the_end(a_broker, quick: ClientOptions) -> None:
    async def main() -> list[Fetched]:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(
                request, {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
            )
            reader = Reader(client, "t", {0: Offset(0)})
            try:
                while True:
                    assert await reader.poll() == []
            finally:
                await reader.close()

    with pytest.raises(RequestFailed) as caught:
        asyncio.run(main())
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_offset_that_is_gone_is_said_at_once(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.FETCH] = lambda request, version: fetched(
                request, {0: ErrorCode.OFFSET_OUT_OF_RANGE}
            )
            reader = Reader(client, "t", {0: Offset(0)})
            with pytest.raises(RequestFailed) as caught:
                await reader.poll()
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
            assert len(broker.versions_seen(ApiKey.FETCH)) == 1
            await reader.close()

    asyncio.run(main())
