"""Closing in the middle of something: no task is left that nobody waits for."""

import asyncio

import pytest

from ottla.clients.consumer.group_work import GroupWork
from ottla.clients.consumer.positions import Positions
from ottla.clients.consumer.subscription import Subscription
from ottla.clients.producer.aio import Producer
from ottla.protocol.api import ApiKey
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse


def test_leaving_a_group_that_takes_too_long_leaves_no_task() -> None:
    async def main() -> int:
        work = GroupWork(Subscription(), None, None, lambda: None)  # type: ignore[arg-type]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await work.driving(asyncio.Event().wait())  # type: ignore[arg-type]
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


def test_a_turn_that_was_due_when_the_sender_closed_sends_nothing(a_broker: type) -> None:
    async def main() -> int:
        async with a_broker() as broker:
            broker.answers[ApiKey.INIT_PRODUCER_ID] = lambda *_: InitProducerIdResponse(
                producer_id=7, producer_epoch=0
            )
            producer = Producer(str(broker.address), linger_ms=60_000, enable_idempotence=False)
            await producer.start()
            await producer.send("t", b"v", on_delivery=lambda *_: None)
            core = producer._core
            assert core is not None
            sender = core._sender
            sender.flushing += 1
            sender.wake()
            under_way = sender.close()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            left = len(sender._tasks)
            await asyncio.gather(*under_way, return_exceptions=True)
            await producer.close(0.0)
            return left

    assert asyncio.run(main()) == 0


def test_positions_that_are_closed_are_not_looked_for() -> None:
    async def main() -> int:
        positions = Positions(None, Subscription(), None, None, lambda: None)  # type: ignore[arg-type]
        await positions.close()
        positions.request()
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
