"""ControlledShutdown: a broker that is about to stop asks the controller to let others lead."""

from __future__ import annotations

from ottla.broker.leaderships import Leaderships
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


class ControlledShutdownHandler:
    """Moves leaderships away from a broker, and tells what it leads still."""

    def __init__(self, leaderships: Leaderships) -> None:
        self._leaderships = leaderships

    async def handle(
        self, request: ControlledShutdownRequest, _context: RequestContext
    ) -> ControlledShutdownResponse:
        remaining = await self._leaderships.release(
            BrokerId(request.broker_id), request.broker_epoch
        )
        return ControlledShutdownResponse(
            remaining_partitions=[RemainingPartition(key.topic, key.partition) for key in remaining]
        )

    def refuse(
        self, _request: ControlledShutdownRequest, code: ErrorCode
    ) -> ControlledShutdownResponse:
        return ControlledShutdownResponse(error_code=code)
