"""Markers reach the leader of every partition of a transaction, however often it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ottla.broker.marker_delivery import RETRY_SECONDS, MarkerDelivery
from ottla.broker.peers import PeerUnreachable
from ottla.broker.transaction_markers import MarkerWriter
from ottla.cluster import layout
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.message import Message
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from unit.broker.cluster import Pictures, a_partition, a_picture, a_topic
from unit.broker.markers import HERE, PRODUCER, control_batches, markers, open_transaction
from unit.broker.stage import ME, TWO, Stage, an_image
from unit.net.running import pass_time, run, turns

THERE, ALSO_THERE = TopicPartition("far", 0), TopicPartition("far", 1)
LEADERLESS, GONE = TopicPartition("orphan", 0), TopicPartition("deleted", 0)


class Owner:
    """Keeps what is reported as written, until it does not wait any more."""

    def __init__(self) -> None:
        self.is_waiting = True
        self.reported: list[list[TopicPartition]] = []

    def written(self, _markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> None:
        self.reported.append(sorted(partitions))


class Others:
    """The other brokers: answer each marker with the code a test has set for its partition."""

    def __init__(self) -> None:
        self.requests: list[WriteTxnMarkersRequest] = []
        self.codes: dict[TopicPartition, ErrorCode] = {}
        self.is_reachable = True
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(
        self, broker_id: BrokerId, request: Message, *, version: int | None = None
    ) -> Message:
        assert version is None
        assert isinstance(request, WriteTxnMarkersRequest)
        self.requests.append(request)
        await self.may_answer.wait()
        if not self.is_reachable:
            raise PeerUnreachable(broker_id, "it is cut off")
        return WriteTxnMarkersResponse(
            [
                WritableTxnMarkerResult(
                    marker.producer_id,
                    [
                        WritableTxnMarkerTopicResult(
                            topic.name,
                            [
                                WritableTxnMarkerPartitionResult(
                                    index, self.codes.get(TopicPartition(topic.name, index), 0)
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def asked(self) -> list[list[int]]:
        """The partitions of topic `far` in each request."""
        return [
            [
                index
                for each in request.markers
                for t in each.topics
                for index in t.partition_indexes
            ]
            for request in self.requests
        ]


class Tree:
    """The store: only asked whether a topic exists."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()

    async def get(self, path: str) -> object | None:
        return path if path in self.nodes else None


class Scene:
    """A broker that leads one partition, in a cluster where broker 2 leads two others."""

    def __init__(self) -> None:
        self.stage = Stage(an_image(ME))
        open_transaction(self.stage)
        self.others, self.tree, self.owner = Others(), Tree(), Owner()
        self.view: Any = Pictures()
        self.view.broker_id = ME
        self.show(far=TWO)
        writer = MarkerWriter(self.stage.partitions, None, self.stage.clock)  # type: ignore[arg-type]
        self.delivery = MarkerDelivery(writer, self.view, self.others, self.tree)  # type: ignore[arg-type]

    def show(self, *, far: int) -> None:
        self.view.image = a_picture(
            a_topic("topic", a_partition(0, ME, ME)),
            a_topic("far", a_partition(0, far, ME, TWO), a_partition(1, TWO, TWO)),
            a_topic("orphan", a_partition(0, -1, TWO)),
            brokers=(ME, TWO),
        )

    def begin(self, *partitions: TopicPartition, **changes: int) -> None:
        self.delivery.begin(markers(*partitions, **changes), self.owner)


def test_partitions_here_and_there_are_ended_and_reported() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.begin(HERE, THERE, ALSO_THERE)
        await turns()
        assert sorted(scene.owner.reported) == [[THERE, ALSO_THERE], [HERE]]
        assert scene.stage.partition.log.last_stable_offset == 2
        (request,) = scene.others.requests
        (marker,) = request.markers
        assert (marker.producer_id, marker.producer_epoch) == (PRODUCER, 1)
        assert (marker.coordinator_epoch, marker.transaction_version) == (3, 2)
        assert marker.transaction_result

    run(scenario())


def test_what_comes_up_while_a_broker_is_asked_goes_out_together() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.others.may_answer.clear()
        scene.begin(THERE)
        await turns()
        scene.begin(THERE, epoch=2)
        scene.begin(ALSO_THERE, epoch=3)
        await turns()
        assert scene.others.asked() == [[0]]
        scene.others.may_answer.set()
        await turns()
        assert scene.others.asked() == [[0], [0, 1]]
        assert len(scene.owner.reported) == 3

    run(scenario())


def test_what_was_refused_is_tried_again_with_the_leader_of_then() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.others.codes[THERE] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        scene.begin(THERE, ALSO_THERE)
        await turns()
        assert scene.owner.reported == [[ALSO_THERE]]
        del scene.others.codes[THERE]
        await pass_time(RETRY_SECONDS)
        assert scene.owner.reported == [[ALSO_THERE], [THERE]]
        assert scene.others.asked() == [[0, 1], [0]]

    run(scenario())


def test_a_broker_that_cannot_be_reached_is_asked_until_it_answers_or_another_leads() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.others.is_reachable = False
        scene.begin(THERE, ALSO_THERE)
        for _ in range(5):
            await pass_time(RETRY_SECONDS)
        assert scene.owner.reported == []
        assert len(scene.others.requests) > 3
        scene.show(far=ME)  # not held here yet: not to be taken for gone
        await pass_time(RETRY_SECONDS)
        assert scene.others.asked()[-1] == [1]
        assert scene.owner.reported == []
        scene.others.is_reachable = True
        await pass_time(RETRY_SECONDS)
        await pass_time(RETRY_SECONDS)
        assert scene.owner.reported == [[ALSO_THERE]]

    run(scenario())


def test_a_partition_without_a_leader_waits_for_one() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.begin(LEADERLESS)
        await turns()
        await pass_time(3 * RETRY_SECONDS)
        assert scene.owner.reported == []
        assert scene.others.requests == []

    run(scenario())


def test_only_a_topic_that_the_store_does_not_have_counts_as_done() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.tree.nodes.add(layout.topic_path("deleted"))
        scene.begin(GONE)
        await turns()
        await pass_time(RETRY_SECONDS)
        assert scene.owner.reported == [], "it may be too new to be known here"
        scene.tree.nodes.clear()
        await pass_time(RETRY_SECONDS)
        assert scene.owner.reported == [[GONE]]

    run(scenario())


def test_a_coordinator_that_was_replaced_gives_up() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.others.codes[THERE] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
        scene.begin(THERE)
        await turns()
        await pass_time(3 * RETRY_SECONDS)
        assert scene.owner.reported == []
        assert len(scene.others.requests) == 1

    run(scenario())


def test_a_shard_that_was_dropped_sends_nothing_more() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
        scene.others.is_reachable = False
        scene.begin(HERE, THERE)
        await turns()
        scene.owner.is_waiting = False
        scene.others.is_reachable = True
        scene.stage.partition.take_role(an_image(ME, epoch=2))
        for _ in range(3):
            await pass_time(RETRY_SECONDS)
        assert scene.owner.reported == []
        assert len(scene.others.requests) == 1
        assert control_batches(scene.stage) == 0

    run(scenario())


def test_stopping_leaves_what_is_not_written() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.stage.partition.take_role(an_image(TWO, epoch=1, replicas=(ME, TWO)))
        scene.begin(HERE)
        await turns()
        scene.delivery.stop()
        scene.stage.partition.take_role(an_image(ME, epoch=2))
        await pass_time(10 * RETRY_SECONDS)
        assert control_batches(scene.stage) == 0

    run(scenario())
