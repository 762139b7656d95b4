"""Requests that arrive late: they end no other transaction, and open none that nobody ends."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ottla.broker.transaction_coordinator import TransactionCoordinator
from ottla.coordination.transaction.adding import Addition
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse
from ottla.testing import Broker
from support.eventually import eventually
from support.proxy import Proxy
from support.requests import Place
from transactions.conftest import Stage
from transactions.raw_producer import (
    FIRST,
    SECOND,
    Dialect,
    MessageConnection,
    RawProducer,
    Refused,
)

TIMEOUT_MS = 20_000
HELD_SECONDS = 31
"""Longer than the time-out and the interval at which late transactions are looked for."""

both_versions = pytest.mark.parametrize("dialect", [FIRST, SECOND], ids=lambda one: one.name)


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with Proxy(broker.bootstrap_servers) as started:
        yield started


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Runs what a held request makes wait."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


def wait_timed_out(broker: Broker, producer: RawProducer) -> None:
    """Let the transaction's time pass, and its abort be complete."""
    broker.clock.advance(seconds=HELD_SECONDS)
    eventually(lambda: producer.state() == "CompleteAbort", "the abort of what took too long")


@both_versions
def test_a_transaction_past_its_time_out_is_aborted(stage: Stage, dialect: Dialect) -> None:
    producer = stage.producer(dialect, timeout_ms=TIMEOUT_MS)
    producer.write(stage.places[0], b"too slow")
    stable, high_watermark = stage.reader.ends(stage.places[0])
    assert stable == 0 < high_watermark
    wait_timed_out(stage.broker, producer)
    read = stage.reader.read(stage.places[0])
    assert read.is_stable
    assert read.values == []


@both_versions
def test_a_commit_held_longer_than_the_time_out_commits_nothing(
    stage: Stage, proxy: Proxy, aside: ThreadPoolExecutor, dialect: Dialect
) -> None:
    producer = stage.producer(dialect, through=proxy, timeout_ms=TIMEOUT_MS)
    watching = RawProducer(stage.broker.bootstrap_servers, producer.transactional_id)
    for place in stage.places:
        producer.write(place, b"held")
    hold = proxy.hold(ApiKey.END_TXN)
    committing = aside.submit(producer.commit)
    hold.wait_arrived()
    wait_timed_out(stage.broker, watching)
    hold.release()
    with pytest.raises(Refused) as refused:
        committing.result()
    expected = ErrorCode.PRODUCER_FENCED if dialect is FIRST else ErrorCode.INVALID_TXN_STATE
    assert refused.value.code is expected
    recover(producer)
    producer.write(stage.places[0], b"after")
    producer.commit()
    assert stage.committed() == [[b"after"], []]
    watching.close()


def recover(producer: RawProducer) -> None:
    """What a client does whose transaction was aborted for it."""
    if producer.dialect is FIRST:
        producer.init()
    else:
        producer.abort()


@pytest.mark.parametrize("held_commits", [True, False])
def test_a_delayed_end_does_not_end_the_next_transaction(
    stage: Stage, proxy: Proxy, aside: ThreadPoolExecutor, held_commits: bool
) -> None:
    """KAFKA-17754: the request is sent again on another connection, and the first comes later."""
    producer = stage.producer(SECOND, through=proxy)
    producer.write(stage.places[0], b"one")
    hold = proxy.hold(ApiKey.END_TXN)
    ending = aside.submit(producer.commit if held_commits else producer.abort)
    hold.wait_arrived()
    hold.hang_up()
    ending.result()
    producer.write(stage.places[0], b"two")
    hold.release()
    hold.wait_answered()
    producer.write(stage.places[1], b"two")
    if held_commits:
        producer.abort()
    else:
        producer.commit()
    expected = [[b"one"], []] if held_commits else [[b"two"], [b"two"]]
    assert stage.committed() == expected


@both_versions
def test_a_produce_that_arrives_after_the_time_out_is_refused(
    stage: Stage, proxy: Proxy, aside: ThreadPoolExecutor, dialect: Dialect
) -> None:
    producer = stage.producer(dialect, timeout_ms=TIMEOUT_MS)
    producer.write(stage.places[0], b"in time")
    if dialect is FIRST:
        producer.add(stage.places[1])
    late = held_produce(proxy, aside, producer, stage.places[1])
    wait_timed_out(stage.broker, producer)
    assert late.arrive() is ErrorCode.INVALID_PRODUCER_EPOCH
    assert all(stage.reader.read(place).is_stable for place in stage.places)
    assert all(stage.reader.read(place).values == [] for place in stage.places)


@both_versions
@pytest.mark.parametrize("is_next_open", [False, True])
def test_a_produce_that_arrives_after_the_end_opens_no_transaction(
    stage: Stage, proxy: Proxy, aside: ThreadPoolExecutor, dialect: Dialect, is_next_open: bool
) -> None:
    """The epoch is the same in the first version: only asking the coordinator shows it is late."""
    producer = stage.producer(dialect)
    producer.write(stage.places[0], b"in time")
    if dialect is FIRST:
        producer.add(stage.places[1])
    late = held_produce(proxy, aside, producer, stage.places[1])
    producer.abort()
    eventually(lambda: producer.state() == "CompleteAbort", "the end of the abort")
    if is_next_open:
        producer.write(stage.places[0], b"next")
    abortable, stale = ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_PRODUCER_EPOCH
    assert late.arrive() is (abortable if dialect is FIRST else stale)
    if is_next_open:
        producer.commit()
    stage.reader.wait_stable(*stage.places)
    assert stage.reader.read(stage.places[0]).values == ([b"next"] if is_next_open else [])
    assert stage.reader.read(stage.places[1]).values == []


class LateProduce:
    """A Produce on its own connection that waits in the proxy."""

    def __init__(
        self, proxy: Proxy, aside: ThreadPoolExecutor, request: ProduceRequest, version: int
    ) -> None:
        self._connection = MessageConnection(proxy.bootstrap_servers)
        self._hold = proxy.hold(ApiKey.PRODUCE)
        self._answer: Future[ProduceResponse] = aside.submit(
            self._connection.exchange, request, version, ProduceResponse
        )
        self._hold.wait_arrived()

    def arrive(self) -> ErrorCode:
        """Let it go on; returns what the broker said to it."""
        self._hold.release()
        response = self._answer.result()
        self._connection.close()
        return ErrorCode(response.responses[0].partition_responses[0].error_code)


def held_produce(
    proxy: Proxy, aside: ThreadPoolExecutor, producer: RawProducer, place: Place
) -> LateProduce:
    request = producer.produce_request(place, [(None, b"late")])
    return LateProduce(proxy, aside, request, producer.dialect.produce)


def test_a_late_produce_is_not_taken_along_by_one_that_is_in_time(stage: Stage) -> None:
    """One request for two partitions, of which only one is in the transaction."""
    producer = stage.producer(FIRST)
    producer.write(stage.places[0], b"one")
    request = producer.produce_request(stage.places[0], [(None, b"two")])
    stranger = producer.produce_request(stage.places[1], [(None, b"two")])
    request.topic_data += stranger.topic_data
    answer = producer.connection.exchange(request, FIRST.produce, ProduceResponse)
    codes = [topic.partition_responses[0].error_code for topic in answer.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    producer.commit()
    assert stage.committed() == [[b"one", b"two"], []]


def test_a_partition_whose_transaction_ends_while_another_is_asked_about_is_not_written_to(
    stage: Stage, aside: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request for two partitions: one is open, the coordinator is asked about the other."""
    is_asked, may_answer = threading.Event(), threading.Event()
    verify = TransactionCoordinator.verify_committed

    async def verify_slowly(
        self: TransactionCoordinator, addition: Addition
    ) -> dict[TopicPartition, int]:
        codes = await verify(self, addition)
        is_asked.set()
        await asyncio.to_thread(may_answer.wait, 20)
        return codes

    producer = stage.producer(FIRST)
    producer.write(stage.places[0], b"one")
    producer.add(stage.places[1])
    monkeypatch.setattr(TransactionCoordinator, "verify_committed", verify_slowly)
    request = producer.produce_request(stage.places[0], [(None, b"two")])
    request.topic_data += producer.produce_request(stage.places[1], [(None, b"two")]).topic_data
    beside = MessageConnection(stage.broker.bootstrap_servers)
    answer = aside.submit(beside.exchange, request, FIRST.produce, ProduceResponse)
    assert is_asked.wait(20)
    producer.abort()
    stage.reader.wait_stable(*stage.places)
    may_answer.set()
    codes = [topic.partition_responses[0].error_code for topic in answer.result().responses]
    beside.close()
    assert codes == [ErrorCode.TRANSACTION_ABORTABLE] * 2
    assert all(stage.reader.read(place).is_stable for place in stage.places)


def test_records_that_wait_for_the_coordinator_stay_what_they_are(
    stage: Stage, aside: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile others send just as large requests, into the same receive buffer."""
    is_asked, may_answer = threading.Event(), threading.Event()
    add = TransactionCoordinator.add

    async def add_slowly(
        self: TransactionCoordinator, addition: Addition
    ) -> dict[TopicPartition, int]:
        if addition.transactional_id == "slow":
            is_asked.set()
            await asyncio.to_thread(may_answer.wait, 20)
        return await add(self, addition)

    monkeypatch.setattr(TransactionCoordinator, "add", add_slowly)
    slow = stage.producer(SECOND, name="slow")
    fast = stage.producer(SECOND, name="fast")
    writing = aside.submit(slow.write, stage.places[0], b"slow")
    assert is_asked.wait(20)
    fast.write(stage.places[0], b"fast")
    may_answer.set()
    writing.result()
    for producer in (slow, fast):
        producer.commit()
    stage.reader.wait_stable(*stage.places)
    assert stage.reader.read(stage.places[0]).values == [b"fast", b"slow"]


def test_records_of_a_delayed_produce_stay_what_they_are(
    stage: Stage, aside: ThreadPoolExecutor
) -> None:
    slow = stage.producer(SECOND, name="slow")
    fast = stage.producer(SECOND, name="fast")
    stage.broker.faults.delay("Produce", seconds=600)
    writing = aside.submit(slow.write, stage.places[0], b"slow")
    eventually(lambda: not stage.broker.faults.concerns(ApiKey.PRODUCE), "the delay's beginning")
    fast.write(stage.places[0], b"fast")
    fast.commit()
    stage.broker.clock.advance(seconds=600)
    writing.result()
    slow.commit()
    stage.reader.wait_stable(*stage.places)
    assert stage.reader.read(stage.places[0]).values == [b"fast", b"slow"]


def test_an_answer_that_was_lost_is_given_again(stage: Stage, proxy: Proxy) -> None:
    producer = stage.producer(SECOND, through=proxy)
    proxy.cut_answer(ApiKey.PRODUCE)
    producer.write(stage.places[0], b"once")
    proxy.cut_answer(ApiKey.END_TXN)
    before = producer.epoch
    producer.commit()
    assert producer.epoch == before + 1
    stage.reader.wait_stable(*stage.places)
    assert stage.reader.read(stage.places[0]).values == [b"once"]
