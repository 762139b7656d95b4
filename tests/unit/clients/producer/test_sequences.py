"""Sequences and epochs under every kind of failure, against a log that checks them as Kafka."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.clients.failures import SendsFailed
from ottla.clients.producer.aio import Producer
from ottla.clients.producer.batch import ProducerBatch
from ottla.clients.producer.routing import PartitionQueue
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.metadata import MetadataResponseBroker
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.records.batch import RecordBatch

CLOSE = "close"
WRITE_AND_CLOSE = "write and close"
WRITE_UNANSWERED = "write and do not answer"
WRITE_AND_FORGET = "write, forget as Kafka does when it is started again, and close"
Step = str | ErrorCode
QUICK = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2, "linger_ms": 0, "batch_size": 0}


@dataclass
class Log:
    """One partition that knows its producers; each request takes the next step of the script."""

    script: list[Step] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    stamps: list[tuple[int, int]] = field(default_factory=list)
    known: dict[int, tuple[int, int, dict[int, int]]] = field(default_factory=dict)

    def answer(self, request: Message, version: int) -> Message | bytes | None:
        assert isinstance(request, ProduceRequest)
        step = self.script.pop(0) if self.script else ErrorCode.NONE
        if step == CLOSE:
            return None
        data = request.topic_data[0].partition_data[0].records
        row = PartitionProduceResponse(index=0)
        if isinstance(step, ErrorCode) and step is not ErrorCode.NONE:
            row.error_code = int(step)
        else:
            assert data is not None
            row = self.append(RecordBatch(memoryview(bytes(data))))
        if step == WRITE_AND_FORGET:
            self.known = {
                producer: (epoch, after, dict(list(recent.items())[-1:]))
                for producer, (epoch, after, recent) in self.known.items()
            }
        if step in (WRITE_AND_CLOSE, WRITE_AND_FORGET):
            return None
        if step == WRITE_UNANSWERED:
            return b""
        topic = TopicProduceResponse(topic_id=b"t" * 16, partition_responses=[row])
        return ProduceResponse(responses=[topic])

    def append(self, batch: RecordBatch) -> PartitionProduceResponse:
        assert batch.is_intact()
        epoch, expected, recent = self.known.get(batch.producer_id, (-1, 0, {}))
        if batch.producer_epoch > epoch:
            expected, recent = 0, {}
        self.stamps.append((batch.producer_epoch, batch.base_sequence))
        if batch.base_sequence in recent:
            return PartitionProduceResponse(index=0, base_offset=recent[batch.base_sequence])
        if batch.base_sequence != expected:
            code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            return PartitionProduceResponse(index=0, error_code=int(code))
        offset = len(self.values)
        self.values += [record.value or b"" for record in batch.records()]
        recent = dict([*recent.items(), (batch.base_sequence, offset)][-5:])
        after = batch.base_sequence + batch.record_count
        self.known[batch.producer_id] = (batch.producer_epoch, after, recent)
        return PartitionProduceResponse(index=0, base_offset=offset)


async def send_all(a_broker: type, log: Log, count: int, **how: object) -> list[int | OttlaError]:
    """Sends numbered records; returns for each its offset or its error."""
    async with a_broker() as broker:
        broker.answers[ApiKey.PRODUCE] = log.answer
        broker.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, version: InitProducerIdResponse(
            producer_id=7, producer_epoch=0
        )
        async with Producer(str(broker.address), **{**QUICK, **how}) as producer:
            deliveries = [await producer.send("t", b"%d" % number) for number in range(count)]
            with suppress(SendsFailed):
                await producer.flush()
            outcomes: list[int | OttlaError] = []
            for delivery in deliveries:
                try:
                    outcomes.append((await delivery).offset)
                except OttlaError as error:
                    outcomes.append(error)
            return outcomes


MANY = settings(
    max_examples=60,
    deadline=None,
    # The fixture is a class, and every example makes its own of it.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
trouble = st.sampled_from(
    [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        CLOSE,
        WRITE_AND_CLOSE,
    ]
)


@given(script=st.lists(trouble, max_size=12))
@MANY
def test_any_passing_trouble_leaves_every_record_once_and_in_order(
    a_broker: type, script: list[Step]
) -> None:
    log = Log(list(script))
    outcomes = asyncio.run(send_all(a_broker, log, 12))

    assert log.values == [b"%d" % number for number in range(12)]
    assert outcomes == list(range(12))


@given(
    script=st.lists(st.one_of(trouble, st.just(ErrorCode.TOPIC_AUTHORIZATION_FAILED)), max_size=12)
)
@MANY
def test_a_record_refused_for_good_leaves_the_others_once_and_in_order(
    a_broker: type, script: list[Step]
) -> None:
    log = Log(list(script))
    outcomes = asyncio.run(send_all(a_broker, log, 12))
    written = [
        b"%d" % number for number in range(12) if not isinstance(outcomes[number], OttlaError)
    ]
    refused = [outcome for outcome in outcomes if isinstance(outcome, OttlaError)]

    assert {error.code for error in refused} <= {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    # One that was refused after an answer got lost may be in the log all the same: never twice.
    assert [value for value in log.values if value in written] == written
    assert len(set(log.values)) == len(log.values)


def test_a_definite_refusal_begins_a_new_epoch(a_broker: type) -> None:
    log = Log([ErrorCode.NONE, ErrorCode.INVALID_RECORD])
    outcomes = asyncio.run(send_all(a_broker, log, 4, max_in_flight_requests_per_connection=1))

    assert isinstance(outcomes[1], OttlaError)
    assert outcomes[2:] == [1, 2]
    assert log.stamps == [(0, 0), (1, 0), (1, 1)]


def test_a_broker_that_lost_count_costs_one_batch_and_no_more(a_broker: type) -> None:
    log = Log([ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
    outcomes = asyncio.run(send_all(a_broker, log, 3, max_in_flight_requests_per_connection=1))

    assert isinstance(outcomes[1], OttlaError)
    assert (outcomes[0], outcomes[2]) == (0, 1)


@pytest.mark.parametrize("unanswered", [1, 2, 4])
def test_what_a_forgetful_broker_may_have_is_given_up_and_not_written_twice(
    a_broker: type, unanswered: int
) -> None:
    log = Log([ErrorCode.NONE, *[WRITE_UNANSWERED] * unanswered, WRITE_AND_FORGET])
    outcomes = asyncio.run(send_all(a_broker, log, 9))

    numbers = [int(value) for value in log.values]
    assert numbers == sorted(set(numbers))
    given_up = [number for number, told in enumerate(outcomes) if isinstance(told, OttlaError)]
    assert given_up == [1, 2, 3, 4, 5]  # all that was on its way when the connection broke
    assert {*range(2 + unanswered), 6, 7, 8} == set(numbers)


class Handover:
    """Two brokers with one log: the first falls silent after some batches, then the second leads.

    The first answers the first batch, writes `unanswered` more, and is not heard of again.
    """

    def __init__(self, here: Any, elsewhere: Any, log: Log, *, unanswered: int) -> None:
        self._here, self._elsewhere, self._log = here, elsewhere, log
        self._leader = 2
        self._looks = asyncio.Semaphore(0)
        log.script = [ErrorCode.NONE, *[WRITE_UNANSWERED] * unanswered]
        here.answers[ApiKey.METADATA] = lambda request, version: self._metadata()
        here.answers[ApiKey.PRODUCE] = log.answer
        elsewhere.answers[ApiKey.PRODUCE] = self._answer_elsewhere
        here.answers[ApiKey.INIT_PRODUCER_ID] = lambda request, version: InitProducerIdResponse(
            producer_id=7, producer_epoch=0
        )

    async def wait_looks(self, count: int) -> None:
        """Returns when the client has looked at the cluster so many times more."""
        while not self._looks.locked():
            await self._looks.acquire()
        for _ in range(count):
            await self._looks.acquire()

    def _answer_elsewhere(self, request: Message, version: int) -> Message | bytes | None:
        if not self._log.script:
            return b""
        answer = self._log.answer(request, version)
        if not self._log.script:
            self._leader = 1
        return answer

    def _metadata(self) -> Message:
        self._looks.release()
        picture = self._here.metadata()
        host, port = self._elsewhere.address.host, self._elsewhere.address.port
        picture.brokers.append(MetadataResponseBroker(node_id=2, host=host, port=port))
        (partition,) = picture.topics[0].partitions
        partition.leader_id = self._leader
        partition.leader_epoch = 2 - self._leader
        return picture


async def send_through_handover(
    a_broker: type, log: Log, *groups: int, **how: object
) -> list[int | OttlaError]:
    """Sends groups of records, the last one to the new leader; for each its offset or its error."""
    async with a_broker() as here, a_broker() as elsewhere:
        handover = Handover(here, elsewhere, log, unanswered=sum(groups[:-1]) - 1)
        settings = {**QUICK, "metadata_max_age_ms": 50, **how}
        async with Producer(str(here.address), **settings) as producer:
            deliveries: list[Any] = []
            for count in groups:
                deliveries += [
                    await producer.send("t", b"%d" % (len(deliveries) + number))
                    for number in range(count)
                ]
                await handover.wait_looks(6)
            told = await asyncio.gather(*deliveries, return_exceptions=True)
    return [each if isinstance(each, OttlaError) else each.offset for each in told]


def test_a_new_leader_is_not_sent_so_much_that_it_forgets_what_the_old_one_never_answered(
    a_broker: type,
) -> None:
    log = Log()
    outcomes = asyncio.run(send_through_handover(a_broker, log, 4, 16, request_timeout_ms=1500))
    assert outcomes == list(range(20))
    assert log.values == [b"%d" % number for number in range(20)]


def test_what_came_before_something_acknowledged_is_written_and_not_sent_anew(
    a_broker: type,
) -> None:
    """Though one before it was given up: that one cannot be missing in the log."""
    log = Log()
    original = log.append

    def forgetful(batch: RecordBatch) -> PartitionProduceResponse:
        answer = original(batch)
        epoch, after, recent = log.known[7]
        log.known[7] = (epoch, after, dict(list(recent.items())[-1:]))
        return answer

    log.append = forgetful  # type: ignore[method-assign]
    told = asyncio.run(
        send_through_handover(
            a_broker, log, 2, 2, 1, request_timeout_ms=1500, delivery_timeout_ms=1500
        )
    )
    assert [isinstance(each, OttlaError) for each in told] == [False, True, True, True, False]
    assert log.values == [b"%d" % number for number in range(5)]


def test_what_a_broker_stored_in_one_epoch_tells_nothing_of_the_next() -> None:
    queue = PartitionQueue("t", 0)
    early, late = ProducerBatch("t", 0, 0.0), ProducerBatch("t", 0, 0.0)
    early.order, late.order = 1.0, 2.0
    queue.stored(late)
    queue.doubt(early)
    assert queue.doubts == []
    queue.count_anew()
    queue.doubt(early)
    assert queue.doubts == [1.0]
    queue.stored(late)
    assert queue.doubts == []


def test_a_duplicate_counts_as_written(a_broker: type) -> None:
    log = Log([ErrorCode.DUPLICATE_SEQUENCE_NUMBER])

    assert asyncio.run(send_all(a_broker, log, 1)) == [-1]


@pytest.mark.parametrize(("acks", "stamped"), [("all", 7), ("1", -1)])
def test_only_acks_all_carries_a_producer_id(a_broker: type, acks: str, stamped: int) -> None:
    log = Log()
    original: Callable[[RecordBatch], PartitionProduceResponse] = log.append
    seen: list[int] = []

    def append(batch: RecordBatch) -> PartitionProduceResponse:
        seen.append(batch.producer_id)
        return original(batch) if batch.producer_id >= 0 else PartitionProduceResponse(index=0)

    log.append = append  # type: ignore[method-assign]
    asyncio.run(send_all(a_broker, log, 2, acks=acks))

    assert set(seen) == {stamped}
