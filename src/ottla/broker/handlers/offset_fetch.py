"""OffsetFetch: how far groups have read; many groups in one request in its later versions."""

from __future__ import annotations

from typing import Final

from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.handlers.group_request import caller_of
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

FIRST_VERSION_WITH_GROUPS: Final = 8
_NO_OFFSET: Final = -1


class OffsetFetchHandler:
    """Reads committed offsets; never one that could still be lost."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: OffsetFetchRequest, context: RequestContext
    ) -> OffsetFetchResponse:
        if context.version < FIRST_VERSION_WITH_GROUPS:
            running = self._coordinator.find(request.group_id)
            groups, caller = running.shard.groups, caller_of(context)
            return await running.runtime.read(lambda: groups.offset_fetch(request, caller))
        return OffsetFetchResponse(
            groups=[
                await self._group(group, context.version, require_stable=request.require_stable)
                for group in request.groups
            ]
        )

    def refuse(self, request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
        """The first versions have no place for an error but the partitions."""
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    topic.name,
                    [
                        OffsetFetchResponsePartition(index, _NO_OFFSET, error_code=code)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics or []
            ],
            error_code=code,
            groups=[
                OffsetFetchResponseGroup(group.group_id, error_code=code)
                for group in request.groups
            ],
        )

    async def _group(
        self, group: OffsetFetchRequestGroup, version: int, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        try:
            running = self._coordinator.find(group.group_id)
            groups = running.shard.groups
            return await running.runtime.read(
                lambda: groups.fetch_offsets(group, version=version, require_stable=require_stable)
            )
        except OttlaError as error:
            return OffsetFetchResponseGroup(group.group_id, error_code=error.code)
