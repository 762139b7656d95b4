"""The end of a partition, as a leader tells it that has just been elected."""

from __future__ import annotations

import asyncio

import pytest

from ottla.broker.handlers.list_offsets import EARLIEST, LATEST, ListOffsetsHandler
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId, Offset
from ottla.net.server_connection import Peer
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from unit.broker.stage import ME, Stage, an_image

TWO = BrokerId(2)


def ask(stage: Stage, timestamp: int, version: int = 9) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(0, -1, timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic("topic", [wanted])])
    handler = ListOffsetsHandler(stage.partitions)
    context = RequestContext(version, None, Peer("", 0))
    response = asyncio.run(handler.handle(request, context))
    return response.topics[0].partitions[0]


def elected() -> Stage:
    """A leader that holds a record and has not heard of its follower yet."""
    stage = Stage(an_image(ME, replicas=(ME, TWO)))
    stage.append(b"a")
    stage.partition.take_role(an_image(ME, epoch=1, replicas=(ME, TWO)))
    return stage


@pytest.mark.parametrize(
    ("version", "code"),
    [(9, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)],
)
def test_a_new_leader_does_not_tell_an_end_that_would_go_back(
    version: int, code: ErrorCode
) -> None:
    stage = elected()
    assert ask(stage, LATEST, version).error_code == code
    assert ask(stage, 2**62, version).error_code == code
    assert ask(stage, EARLIEST, version).error_code == ErrorCode.NONE


def test_it_tells_the_end_once_its_followers_have_come_so_far() -> None:
    stage = elected()
    stage.partition.fetched_by(TWO, Offset(1))
    answer = ask(stage, LATEST)
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, 1)
