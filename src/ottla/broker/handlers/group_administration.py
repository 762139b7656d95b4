"""ListGroups, DescribeGroups, ConsumerGroupDescribe and DeleteGroups: requests about many groups,
taken apart by the shards that keep them and put together again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.broker.group_coordinator import GroupCoordinator
from ottla.broker.handlers.group_request import caller_of
from ottla.broker.request import RequestContext
from ottla.coordination.group.failures import refused
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.message import Message
from ottla.protocol.messages import consumer_group_describe as consumer
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

GROUP_OPERATIONS: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""Read, delete, describe, describe configs and alter configs: as bits, what there is to do with a
group. Without an authorizer everybody may do all of it."""


class ListGroupsHandler:
    """Lists the groups of all shards here."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: ListGroupsRequest, _context: RequestContext
    ) -> ListGroupsResponse:
        listed = []
        for running in self._coordinator:
            running.runtime.check_ready()
            listed += running.shard.groups.list_groups(request)
        return ListGroupsResponse(groups=listed)

    def refuse(self, request: ListGroupsRequest, code: ErrorCode) -> Message:
        return refused(request, code)


class DescribeGroupsHandler:
    """Describes classic groups."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: DescribeGroupsRequest, context: RequestContext
    ) -> DescribeGroupsResponse:
        groups = [await self._describe(group_id, context.version) for group_id in request.groups]
        if request.include_authorized_operations:
            _tell_operations(groups)
        return DescribeGroupsResponse(groups=groups)

    def refuse(self, request: DescribeGroupsRequest, code: ErrorCode) -> Message:
        return refused(request, code)

    async def _describe(self, group_id: str, version: int) -> DescribedGroup:
        try:
            running = self._coordinator.find(group_id)
            groups = running.shard.groups
            return await running.runtime.read(lambda: groups.describe_group(group_id, version))
        except OttlaError as error:
            return DescribedGroup(error.code, str(error), group_id)


class ConsumerGroupDescribeHandler:
    """Describes groups of the new protocol."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: consumer.ConsumerGroupDescribeRequest, _context: RequestContext
    ) -> consumer.ConsumerGroupDescribeResponse:
        groups = [await self._describe(group_id) for group_id in request.group_ids]
        if request.include_authorized_operations:
            _tell_operations(groups)
        return consumer.ConsumerGroupDescribeResponse(groups=groups)

    def refuse(self, request: consumer.ConsumerGroupDescribeRequest, code: ErrorCode) -> Message:
        return refused(request, code)

    async def _describe(self, group_id: str) -> consumer.DescribedGroup:
        try:
            running = self._coordinator.find(group_id)
            groups = running.shard.groups
            return await running.runtime.read(lambda: groups.describe_consumer_group(group_id))
        except OttlaError as error:
            return consumer.DescribedGroup(error.code, str(error), group_id)


class DeleteGroupsHandler:
    """Deletes groups without members."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, request: DeleteGroupsRequest, context: RequestContext
    ) -> DeleteGroupsResponse:
        results: list[DeletableGroupResult] = []
        for group_id in dict.fromkeys(request.groups_names):
            results += await self._delete(group_id, context)
        return DeleteGroupsResponse(results=results)

    def refuse(self, request: DeleteGroupsRequest, code: ErrorCode) -> Message:
        return refused(request, code)

    async def _delete(self, group_id: str, context: RequestContext) -> list[DeletableGroupResult]:
        one = DeleteGroupsRequest(groups_names=[group_id])
        caller = caller_of(context)
        try:
            running = self._coordinator.find(group_id)
            response = await running.runtime.ask(
                lambda ticket, now_ms: running.shard.groups.delete_groups(
                    one, caller, ticket, now_ms
                )
            )
        except OttlaError as error:
            return [DeletableGroupResult(group_id, error.code, str(error))]
        assert isinstance(response, DeleteGroupsResponse)
        return response.results


def _tell_operations(groups: Iterable[DescribedGroup | consumer.DescribedGroup]) -> None:
    for group in groups:
        if not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
