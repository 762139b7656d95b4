"""What `ottla produce` says of the records it sent."""

import asyncio

from ottla.cli.deliveries import Deliveries, Run
from ottla.clients.producer.batch import RecordMetadata
from ottla.errors import ErrorCode, RequestFailed


def written(partition: int, offset: int) -> RecordMetadata:
    return RecordMetadata("t", partition, offset, 0)


def heard(*places: tuple[int, int]) -> Deliveries:
    deliveries = Deliveries()
    for partition, offset in places:
        deliveries.hear(written(partition, offset), None)
    return deliveries


def test_neighbours_are_one_run_and_others_are_not() -> None:
    deliveries = heard((0, 5), (0, 6), (1, 7), (1, 9), (0, 7))
    assert deliveries.take_runs() == [Run(0, 5, 2), Run(1, 7, 1), Run(1, 9, 1), Run(0, 7, 1)]
    assert (deliveries.record_count, deliveries.partitions) == (5, {0, 1})


def test_records_whose_place_nobody_says_are_counted_together() -> None:
    assert heard((2, -1), (2, -1), (2, -1)).take_runs() == [Run(2, -1, 3)]


def test_what_was_taken_is_not_told_again_and_news_are_over() -> None:
    deliveries = heard((0, 0))
    assert deliveries.news.is_set()
    deliveries.take_runs()
    assert not deliveries.news.is_set()
    deliveries.hear(written(0, 1), None)
    assert deliveries.take_runs() == [Run(0, 1, 1)]


def test_the_first_error_is_kept() -> None:
    async def main() -> None:
        deliveries = Deliveries()
        first, second = (RequestFailed(ErrorCode.MESSAGE_TOO_LARGE, each) for each in "ab")
        deliveries.hear(None, first)
        deliveries.hear(None, second)
        async with asyncio.timeout(1):
            await deliveries.news.wait()
        assert deliveries.error is first

    asyncio.run(main())
