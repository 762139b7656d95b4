"""Sequences and epochs under every kind of failure, against a log that checks them as Kafka."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.clients.producer.aio import Producer
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.api import ApiKey
from ottla.protocol.message import Message
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
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
