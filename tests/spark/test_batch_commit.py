"""A micro-batch is written once, whatever stops its driver, its rival, its clock or its broker.

The driver's half alone, without a JVM: each window between two steps has a test that stops there.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from ottla.clients.client import Client
from ottla.clients.connection_settings import client_for
from ottla.clients.failures import Fenced
from ottla.clients.producer import transaction
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.spark.batch_commit import BatchCommit, Load, Outcome, commit_batch
from ottla.spark.ledger import LedgerEntry
from ottla.spark.options import Use
from ottla.spark.row_encoder import EncodedRun
from ottla.spark.sink_plan import SinkPlan, sink_plan
from ottla.testing import Broker, ChildBroker
from spark.topics import make_topic, values_of

NewName = Callable[[], str]
SCHEMA = StructType([StructField("value", StringType())])
STEPS = ("take_over", "append", "note", "end")


def a_plan(bootstrap: str, topic: str, **options: str) -> SinkPlan:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, **options}
    return sink_plan(Use.STREAM_WRITE, given, SCHEMA)


def a_load(topic: str, batch_id: int, *, query: str = "q", name: str = "") -> Load:
    """A batch of two records in each of two partitions."""
    name = name or f"of-{topic}"
    runs = []
    for partition in range(2):
        builder = BatchBuilder()
        for number in range(2):
            builder.append(
                time.time_ns() // 1_000_000, None, b"%d/%d/%d" % (batch_id, partition, number)
            )
        where = TopicPartition(topic, partition)
        runs.append(EncodedRun(where, [builder.build()], 2))
    return Load(name, runs, LedgerEntry(name, query, batch_id))


def values(*batch_ids: int) -> list[bytes]:
    """What those batches leave in a topic."""
    return [b"%d/%d/%d" % (b, p, n) for p in range(2) for b in batch_ids for n in range(2)]


class Killed(BaseException):
    """The driver is gone: nothing after this line runs."""


class DyingCommit(BatchCommit):
    """A driver that dies after one of the steps, without a last word."""

    last_step = ""

    async def take_over(self) -> None:
        await super().take_over()
        self._die_after("take_over")

    async def append(self) -> None:
        await super().append()
        self._die_after("append")

    async def note(self) -> None:
        await super().note()
        self._die_after("note")

    async def end(self) -> None:
        await super().end()
        self._die_after("end")

    async def _abort(self) -> None:
        """The dead abort nothing."""

    def _die_after(self, step: str) -> None:
        if step == self.last_step:
            raise Killed


def die_after(step: str, plan: SinkPlan, load: Load) -> None:
    async def attempt() -> None:
        async with client_for(plan.connection) as client:
            commit = DyingCommit(client, plan.under(load.transactional_id), load)
            commit.last_step = step
            await commit.run()

    with pytest.raises(Killed):
        asyncio.run(attempt())


def write(plan: SinkPlan, load: Load) -> Outcome:
    return asyncio.run(commit_batch(plan, load))


@pytest.fixture(autouse=True, params=["first version", "second version"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both versions of the protocol of transactions keep every promise."""
    if request.param == "first version":
        monkeypatch.setattr(transaction, "_SECOND_VERSION", 99)  # no cluster is so new


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    return make_topic(bootstrap, new_name())


def test_batches_follow_each_other(bootstrap: str, topic: str) -> None:
    plan = a_plan(bootstrap, topic)
    assert [write(plan, a_load(topic, number)) for number in range(3)] == [Outcome.WRITTEN] * 3
    assert values_of(bootstrap, topic) == values(0, 1, 2)


def test_a_batch_that_is_done_again_is_recognised(bootstrap: str, topic: str) -> None:
    plan = a_plan(bootstrap, topic)
    write(plan, a_load(topic, 0))
    write(plan, a_load(topic, 1))
    assert write(plan, a_load(topic, 1)) is Outcome.WAS_WRITTEN
    assert write(plan, a_load(topic, 0)) is Outcome.WAS_WRITTEN
    assert values_of(bootstrap, topic) == values(0, 1)


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_dies_between_two_steps_leaves_nothing_twice(
    step: str, bootstrap: str, topic: str
) -> None:
    plan = a_plan(bootstrap, topic)
    write(plan, a_load(topic, 6))
    die_after(step, plan, a_load(topic, 7))

    again = write(plan, a_load(topic, 7))

    assert again is (Outcome.WAS_WRITTEN if step == "end" else Outcome.WRITTEN)
    write(plan, a_load(topic, 8))
    assert values_of(bootstrap, topic) == values(6, 7, 8)


def test_a_query_without_its_old_checkpoint_counts_anew(bootstrap: str, topic: str) -> None:
    plan = a_plan(bootstrap, topic)
    write(plan, a_load(topic, 5, query="before"))
    assert write(plan, a_load(topic, 0, query="after")) is Outcome.WRITTEN
    assert write(plan, a_load(topic, 0, query="after")) is Outcome.WAS_WRITTEN
    assert values_of(bootstrap, topic) == values(5, 0)


def test_the_ledger_is_found_when_batches_go_to_different_topics(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    other = make_topic(bootstrap, new_name())
    plan = a_plan(bootstrap, topic)
    write(plan, a_load(topic, 0, name=topic))
    write(plan, a_load(other, 1, name=topic))
    assert write(plan, a_load(topic, 0, name=topic)) is Outcome.WAS_WRITTEN
    assert write(plan, a_load(other, 1, name=topic)) is Outcome.WAS_WRITTEN


class SlowCommit(BatchCommit):
    """A driver that freezes after a step, until it is told to go on."""

    freezes_after = ""
    frozen: asyncio.Event
    thaw: asyncio.Event

    async def take_over(self) -> None:
        await super().take_over()
        await self._freeze("take_over")

    async def append(self) -> None:
        await super().append()
        await self._freeze("append")

    async def note(self) -> None:
        await super().note()
        await self._freeze("note")

    async def _freeze(self, step: str) -> None:
        if step == self.freezes_after:
            self.frozen.set()
            await self.thaw.wait()


async def freeze(
    step: str, client: Client, plan: SinkPlan, load: Load
) -> tuple[SlowCommit, "asyncio.Task[Any]"]:
    zombie = SlowCommit(client, plan.under(load.transactional_id), load)
    zombie.freezes_after, zombie.frozen, zombie.thaw = step, asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(zombie.run())
    await zombie.frozen.wait()
    return zombie, task


def test_a_driver_that_wakes_before_it_has_written_sees_that_it_is_done(
    bootstrap: str, topic: str
) -> None:
    plan = a_plan(bootstrap, topic)

    async def both() -> None:
        async with client_for(plan.connection) as client:
            zombie, task = await freeze("take_over", client, plan, a_load(topic, 3))
            assert await commit_batch(plan, a_load(topic, 3)) is Outcome.WRITTEN
            zombie.thaw.set()
            assert await task is Outcome.WAS_WRITTEN

    asyncio.run(both())
    assert values_of(bootstrap, topic) == values(3)


@pytest.mark.parametrize("step", ["append", "note"])
def test_a_zombie_driver_is_shut_out_by_its_successor(
    step: str, bootstrap: str, topic: str
) -> None:
    plan, load = a_plan(bootstrap, topic), a_load(topic, 3)

    async def both() -> None:
        async with client_for(plan.connection) as client:
            zombie, task = await freeze(step, client, plan, load)
            assert await commit_batch(plan, a_load(topic, 3)) is Outcome.WRITTEN
            zombie.thaw.set()
            with pytest.raises(OttlaError):
                await task

    asyncio.run(both())
    assert write(plan, a_load(topic, 4)) is Outcome.WRITTEN
    assert values_of(bootstrap, topic) == values(3, 4)


def test_a_late_rival_does_not_shut_out_who_is_ahead(bootstrap: str, topic: str) -> None:
    plan = a_plan(bootstrap, topic)

    async def both() -> None:
        async with client_for(plan.connection) as client:
            await commit_batch(plan, a_load(topic, 3))
            ahead, task = await freeze("append", client, plan, a_load(topic, 4))
            assert await commit_batch(plan, a_load(topic, 3)) is Outcome.WAS_WRITTEN
            ahead.thaw.set()
            assert await task is Outcome.WRITTEN

    asyncio.run(both())
    assert values_of(bootstrap, topic) == values(3, 4)


@pytest.fixture
def clocked() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_a_transaction_that_times_out_is_written_again(clocked: Broker) -> None:
    topic = make_topic(clocked.bootstrap_servers, "slow")
    plan = a_plan(clocked.bootstrap_servers, topic)

    async def too_slow() -> None:
        async with client_for(plan.connection) as client:
            driver, task = await freeze("append", client, plan, a_load(topic, 0))
            clocked.clock.advance(minutes=10)
            await _until_ended(client, topic)
            driver.thaw.set()
            with pytest.raises(OttlaError):
                await task

    asyncio.run(too_slow())
    assert values_of(clocked.bootstrap_servers, topic) == []
    assert write(plan, a_load(topic, 0)) is Outcome.WRITTEN
    assert values_of(clocked.bootstrap_servers, topic) == values(0)


async def _until_ended(client: Client, topic: str) -> None:
    """Waits for the broker to abort what is open."""
    from ottla.clients.offsets import offset_ranges

    async with asyncio.timeout(30):
        while True:
            ends = await offset_ranges(client, topic, [0, 1], committed_only=True)
            if all(end > 0 for _, end in ends.values()):
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("step", STEPS[:3])
def test_a_broker_that_is_killed_in_the_middle_is_waited_for(step: str) -> None:
    with ChildBroker() as broker:
        topic = make_topic(broker.bootstrap_servers, "t")
        plan = a_plan(broker.bootstrap_servers, topic)

        async def interrupted() -> Outcome:
            async with client_for(plan.connection) as client:
                driver, task = await freeze(step, client, plan, a_load(topic, 0))
                await asyncio.to_thread(broker.kill)
                driver.thaw.set()
                await asyncio.to_thread(broker.restart)
                outcome: Outcome = await task
                return outcome

        assert asyncio.run(interrupted()) is Outcome.WRITTEN
        assert write(plan, a_load(topic, 0)) is Outcome.WAS_WRITTEN
        assert values_of(broker.bootstrap_servers, topic) == values(0)


@pytest.mark.parametrize("api", ["EndTxn", "TxnOffsetCommit", "Produce", "InitProducerId"])
def test_an_answer_that_is_lost_is_asked_for_again(api: str, clocked: Broker) -> None:
    topic = make_topic(clocked.bootstrap_servers, "t")
    plan = a_plan(clocked.bootstrap_servers, topic)
    write(plan, a_load(topic, 0))
    clocked.faults.drop(api)

    assert write(plan, a_load(topic, 1)) is Outcome.WRITTEN

    clocked.faults.clear()
    assert write(plan, a_load(topic, 1)) is Outcome.WAS_WRITTEN
    assert values_of(clocked.bootstrap_servers, topic) == values(0, 1)


def test_a_cluster_that_allows_no_transactions_is_told_with_the_way_out(clocked: Broker) -> None:
    topic = make_topic(clocked.bootstrap_servers, "t")
    clocked.faults.fail("InitProducerId", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    with pytest.raises(OttlaError, match="delivery=at-least-once"):
        write(a_plan(clocked.bootstrap_servers, topic), a_load(topic, 0))


def test_being_shut_out_is_said_plainly(clocked: Broker) -> None:
    topic = make_topic(clocked.bootstrap_servers, "t")
    clocked.faults.fail("EndTxn", "PRODUCER_FENCED")
    with pytest.raises(Fenced, match="of-t"):
        write(a_plan(clocked.bootstrap_servers, topic), a_load(topic, 0))
