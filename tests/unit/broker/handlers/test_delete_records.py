"""DeleteRecords is for the leader: a follower that deleted by itself would hold another history."""

from __future__ import annotations

import asyncio

from ottla.broker.handlers.delete_records import DeleteRecordsHandler
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.net.server_connection import Peer
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from unit.broker.stage import ME, Stage, an_image


class Checkpoints:
    """Stands for housekeeping: the new start was written."""

    async def write_checkpoints(self) -> None:
        return


def delete(stage: Stage, offset: int) -> int:
    handler = DeleteRecordsHandler(stage.partitions, Checkpoints())  # type: ignore[arg-type]
    request = DeleteRecordsRequest(
        [DeleteRecordsTopic("topic", [DeleteRecordsPartition(0, offset)])]
    )
    answer = asyncio.run(handler.handle(request, RequestContext(2, None, Peer("", 0, ""))))
    return answer.topics[0].partitions[0].error_code


def test_a_leader_deletes_up_to_its_high_watermark() -> None:
    stage = Stage(an_image(ME))
    stage.append(b"a")
    stage.append(b"b")
    assert delete(stage, 1) == ErrorCode.NONE
    assert stage.partition.log.start_offset == 1


def test_a_follower_deletes_nothing() -> None:
    stage = Stage(an_image(ME))
    stage.append(b"a")
    stage.partition.take_role(an_image(BrokerId(2), epoch=1, replicas=(ME, BrokerId(2))))
    assert delete(stage, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert stage.partition.log.start_offset == 0
