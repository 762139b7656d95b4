"""Members of classic groups, from outside: take them out."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.clients.client import Client
from ottla.clients.coordinators import Coordinated, find_coordinator
from ottla.clients.failures import check_answer
from ottla.clients.groups import describe_group
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

_MANY_VERSION_MIN = 3


async def remove_members(
    client: Client, group: str, instance_ids: Sequence[str] | None = None, *, reason: str = ""
) -> None:
    """Takes static members out by their instance ids; None takes out everybody."""
    if instance_ids is None:
        members = (await describe_group(client, group)).members
        leaving = [
            MemberIdentity(
                member_id="" if member.instance_id else member.id,
                group_instance_id=member.instance_id,
                reason=reason or None,
            )
            for member in members
        ]
    else:
        leaving = [
            MemberIdentity(group_instance_id=each, reason=reason or None) for each in instance_ids
        ]
    request = LeaveGroupRequest(group_id=group, members=leaving)

    async def attempt() -> None:
        coordinator = await find_coordinator(client, Coordinated.GROUP, group)
        response = await client.call(
            request, LeaveGroupResponse, to=coordinator, at_least=_MANY_VERSION_MIN
        )
        check_answer(response.error_code, f"group {group!r}")
        for row in response.members:
            who = row.group_instance_id or row.member_id
            check_answer(row.error_code, f"member {who!r} of group {group!r}")

    await client.retrying(attempt)
