"""Transactions as coordinators and partitions tell of them, and which of them hang."""

import asyncio
from dataclasses import replace

import pytest

from ottla.clients.client import Client, ClientOptions
from ottla.clients.failures import NoOpenTransaction, TransactionNotFound
from ottla.clients.hanging_transactions import (
    GRACE_MS,
    find_hanging,
    open_transaction_at,
    reason_it_hangs,
)
from ottla.clients.transactions import (
    PartitionProducer,
    TransactionDescription,
    TransactionFilter,
    abort_in_partition,
    describe_transaction,
    list_transactions,
)
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import BrokerId, Offset, ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.messages import describe_producers as producers
from ottla.protocol.messages import describe_transactions as described
from ottla.protocol.messages import write_txn_markers as markers
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

PLACE = TopicPartition("t", 0)
NOW_MS = 1_000_000_000
PRODUCER = PartitionProducer(
    PLACE, ProducerId(7), ProducerEpoch(3), 0, NOW_MS - 1000, -1, Offset(42)
)
ONGOING = TransactionDescription(
    id="id",
    coordinator=BrokerId(1),
    state="Ongoing",
    producer_id=ProducerId(7),
    producer_epoch=ProducerEpoch(3),
    timeout_ms=60_000,
    started_ms=NOW_MS - 1000,
    partitions=(PLACE,),
)


def test_a_transaction_that_its_coordinator_will_end_does_not_hang() -> None:
    for state in ("Ongoing", "PrepareCommit", "PrepareAbort"):
        assert reason_it_hangs(PRODUCER, replace(ONGOING, state=state), NOW_MS) is None
    at_its_end = ONGOING.timeout_ms + GRACE_MS
    late = replace(ONGOING, started_ms=NOW_MS - at_its_end)
    assert reason_it_hangs(PRODUCER, late, NOW_MS) is None
    stuck = replace(late, started_ms=0, state="PrepareCommit")
    assert reason_it_hangs(PRODUCER, stuck, NOW_MS) is None


@pytest.mark.parametrize(
    ("transaction", "words"),
    [
        (None, "no coordinator knows"),
        (replace(ONGOING, state="CompleteAbort", partitions=()), "has ended it"),
        (replace(ONGOING, state="Empty", partitions=()), "has ended it"),
        (replace(ONGOING, partitions=(TopicPartition("t", 1),)), "without this partition"),
        (replace(ONGOING, started_ms=0), "past its time-out"),
    ],
)
def test_a_transaction_that_nobody_will_end_hangs(
    transaction: TransactionDescription | None, words: str
) -> None:
    reason = reason_it_hangs(PRODUCER, transaction, NOW_MS)
    assert reason is not None
    assert words in reason


def an_answer(*starts: int) -> producers.DescribeProducersResponse:
    """Producers 7, 8, ... of t-0, each with a transaction from there on (-1: none)."""
    active = [
        producers.ProducerState(
            producer_id=7 + index, last_timestamp=NOW_MS - 1000, current_txn_start_offset=start
        )
        for index, start in enumerate(starts)
    ]
    row = producers.PartitionResponse(partition_index=0, active_producers=active)
    return producers.DescribeProducersResponse(
        topics=[producers.TopicResponse(name="t", partitions=[row])]
    )


def test_a_transaction_is_found_by_where_it_begins(a_broker, quick: ClientOptions) -> None:
    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.DESCRIBE_PRODUCERS] = lambda request, version: an_answer(-1, 42)
            found = await open_transaction_at(client, PLACE, Offset(42))
            assert (found.producer_id, found.coordinator_epoch) == (8, 0)
            with pytest.raises(NoOpenTransaction):
                await open_transaction_at(client, PLACE, Offset(41))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("older_than_ms", "second_answer", "expected"),
    [
        (500, an_answer(42), [42]),
        (500, an_answer(-1), []),  # it ended while the coordinators were asked
        (500, an_answer(50), []),  # and the next one began
        (5000, an_answer(42), []),
    ],
    ids=["hangs", "ended meanwhile", "another began", "too young"],
)
def test_only_what_is_old_and_still_open_hangs(
    a_broker, quick: ClientOptions, older_than_ms: int, second_answer, expected: list[int]
) -> None:
    answers = iter([an_answer(42), second_answer])

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.DESCRIBE_PRODUCERS] = lambda request, version: next(answers)
            broker.answers[ApiKey.LIST_TRANSACTIONS] = lambda request, version: (
                ListTransactionsResponse()
            )
            found = await find_hanging(client, [PLACE], older_than_ms=older_than_ms, now_ms=NOW_MS)
            assert [each.producer.transaction_start for each in found] == expected

    asyncio.run(main())


def test_an_abort_says_what_the_partition_has_seen(a_broker, quick: ClientOptions) -> None:
    codes = iter([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE])

    def answer(request: markers.WriteTxnMarkersRequest, version: int):
        row = markers.WritableTxnMarkerPartitionResult(0, int(next(codes)))
        topic = markers.WritableTxnMarkerTopicResult("t", [row])
        result = markers.WritableTxnMarkerResult(request.markers[0].producer_id, [topic])
        return markers.WriteTxnMarkersResponse(markers=[result])

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.WRITE_TXN_MARKERS] = answer
            await abort_in_partition(client, PRODUCER)
            sent = [each for key, _, each in broker.requests if key is ApiKey.WRITE_TXN_MARKERS]
            assert len(sent) == 2
            (marker,) = sent[-1].markers
            assert (marker.producer_id, marker.producer_epoch) == (7, 3)
            assert (marker.coordinator_epoch, marker.transaction_result) == (0, False)
            assert marker.topics == [markers.WritableTxnMarkerTopic("t", [0])]

    asyncio.run(main())


def test_filters_reach_the_coordinators(a_broker, quick: ClientOptions) -> None:
    rows = [TransactionState("b", 2, "Ongoing"), TransactionState("a", 1, "Ongoing")]
    wanted = TransactionFilter(("Ongoing",), (ProducerId(1),), 5000, "a|b")

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.LIST_TRANSACTIONS] = lambda request, version: (
                ListTransactionsResponse(transaction_states=rows)
            )
            assert [each.id for each in await list_transactions(client, wanted)] == ["a", "b"]
            (sent,) = [each for key, _, each in broker.requests if key is ApiKey.LIST_TRANSACTIONS]
            assert sent == ListTransactionsRequest(["Ongoing"], [1], 5000, "a|b")

    asyncio.run(main())


def test_an_unknown_id_is_not_found_and_other_errors_keep_their_code(
    a_broker, quick: ClientOptions
) -> None:
    codes = iter(
        [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    )

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.FIND_COORDINATOR] = lambda request, version: (
                FindCoordinatorResponse(coordinators=[Coordinator(node_id=1)])
            )
            broker.answers[ApiKey.DESCRIBE_TRANSACTIONS] = lambda request, version: (
                described.DescribeTransactionsResponse(
                    transaction_states=[described.TransactionState(error_code=int(next(codes)))]
                )
            )
            with pytest.raises(TransactionNotFound):
                await describe_transaction(client, "id")
            with pytest.raises(RequestFailed) as caught:
                await describe_transaction(client, "id")
            assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    asyncio.run(main())
