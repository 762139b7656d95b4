"""A coordinator on another broker is asked, and its answer counts only if nothing came between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from ottla.broker.peers import PeerUnreachable
from ottla.broker.transaction_guard import Enrolment, TransactionGuard, enrolment
from ottla.broker.transaction_markers import MarkerWriter
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, ProducerEpoch, ProducerId, TopicPartition
from ottla.protocol.message import Message
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from unit.broker.markers import HERE, PRODUCER, markers, open_transaction
from unit.broker.stage import ME, TWO, Stage, an_image
from unit.net.running import run, turns

PAIR = (PRODUCER, ProducerEpoch(0))
ELSEWHERE = TopicPartition("topic", 7)


class Coordinator:
    """Broker 2 coordinates: answers with one code for all partitions, when it is allowed to."""

    broker_id = ME

    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.requests: list[tuple[AddPartitionsToTxnRequest, int | None]] = []
        self.is_reachable = True
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def broker_of(self, _key: str) -> BrokerId:
        return TWO

    async def ask(
        self, broker_id: BrokerId, request: Message, *, version: int | None = None
    ) -> Message:
        assert isinstance(request, AddPartitionsToTxnRequest)
        self.requests.append((request, version))
        await self.may_answer.wait()
        if not self.is_reachable:
            raise PeerUnreachable(broker_id, "it is cut off")
        (transaction,) = request.transactions
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transaction.transactional_id,
                    [
                        AddPartitionsToTxnTopicResult(
                            topic.name,
                            [
                                AddPartitionsToTxnPartitionResult(index, self.code)
                                for index in topic.partitions
                            ],
                        )
                        for topic in transaction.topics
                    ],
                )
            ]
        )


class Scene:
    """A broker that leads one partition."""

    def __init__(self) -> None:
        self.stage = Stage(an_image(ME))
        self.coordinator = Coordinator()
        self.writer = MarkerWriter(self.stage.partitions, None, self.stage.clock)  # type: ignore[arg-type]
        self.guard = TransactionGuard(
            self.coordinator,  # type: ignore[arg-type]
            self.stage.partitions,
            self.coordinator,
            self.writer,
            lambda: True,
        )

    async def admit(self, how: Enrolment) -> dict[TopicPartition, ErrorCode]:
        return await self.guard.admit("transfers", PAIR, [HERE, ELSEWHERE], how)


@pytest.mark.parametrize(
    ("how", "version"),
    [(Enrolment.IMPLIED, 5), (Enrolment.BEFORE_OR_ABORTED, 4), (Enrolment.BEFORE, 4)],
)
def test_the_coordinator_is_asked_about_what_this_broker_leads(
    how: Enrolment, version: int
) -> None:
    async def scenario() -> None:
        scene = Scene()
        assert await scene.admit(how) == {}
        ((request, sent_as),) = scene.coordinator.requests
        assert sent_as == version
        (transaction,) = request.transactions
        assert transaction.verify_only == (how is not Enrolment.IMPLIED)
        assert (transaction.producer_id, transaction.producer_epoch) == PAIR
        assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("topic", [0])]

    run(scenario())


def test_a_transaction_that_is_open_in_the_log_needs_no_asking() -> None:
    async def scenario() -> None:
        scene = Scene()
        open_transaction(scene.stage)
        assert await scene.admit(Enrolment.IMPLIED) == {}
        assert scene.coordinator.requests == []

    run(scenario())


ABORTABLE, UNTIMELY = ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE
ELSEWHERE_NOW, AGAIN = ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS
FENCED, STALE = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ABORTABLE, [UNTIMELY, ABORTABLE, ABORTABLE]),
        (ELSEWHERE_NOW, [AGAIN, AGAIN, ELSEWHERE_NOW]),
        (FENCED, [STALE, STALE, STALE]),
        (STALE, [STALE, STALE, STALE]),
    ],
)
def test_a_refusal_is_told_in_words_the_producer_knows(
    code: ErrorCode, told: list[ErrorCode]
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.coordinator.code = code
        assert [await scene.admit(how) for how in Enrolment] == [{HERE: each} for each in told]

    run(scenario())


def test_each_version_has_its_own_enrolment() -> None:
    found = [enrolment(version, abortable_from=4, implied_from=5) for version in (0, 3, 4, 5, 6)]
    before, abortable, implied = Enrolment
    assert found == [before, before, abortable, implied, implied]


def test_a_coordinator_that_cannot_be_reached_lets_nothing_in() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.coordinator.is_reachable = False
        assert (await scene.admit(Enrolment.BEFORE))[HERE] is ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await scene.admit(Enrolment.IMPLIED))[HERE] is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario())


async def marker_comes(scene: Scene) -> None:
    await scene.writer.write(HERE, markers(HERE, epoch=0, version=1))


async def marker_of_another_comes(scene: Scene) -> None:
    other = replace(markers(HERE, epoch=0, version=1), producer_id=ProducerId(PRODUCER + 1))
    await scene.writer.write(HERE, other)


async def leadership_goes_and_returns(scene: Scene) -> None:
    scene.stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
    scene.stage.partition.take_role(an_image(ME, epoch=2))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (marker_comes, {HERE: ErrorCode.NOT_ENOUGH_REPLICAS}),
        (leadership_goes_and_returns, {HERE: ErrorCode.NOT_LEADER_OR_FOLLOWER}),
        (marker_of_another_comes, {}),
    ],
)
def test_an_answer_counts_only_if_nothing_came_between(
    event: Callable[[Scene], Awaitable[None]], told: dict[TopicPartition, ErrorCode]
) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.coordinator.may_answer.clear()
        admitting = asyncio.ensure_future(scene.admit(Enrolment.BEFORE))
        await turns()
        await event(scene)
        scene.coordinator.may_answer.set()
        assert await admitting == told

    run(scenario())
