"""Steps of classic consumers that tests take again and again."""

from __future__ import annotations

from ottla.coordination.decision import Ticket
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_groups import DescribedGroup
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from unit.coordination.group.requests import GROUP, beat, fetch, join, sync
from unit.coordination.group.runtime import Runtime


def new_member_id(runtime: Runtime) -> str:
    """Ask for a member id."""
    answer = runtime.ask("join_group", join(), JoinGroupResponse)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return answer.member_id


def start_join(runtime: Runtime, request: JoinGroupRequest | None = None) -> tuple[str, Ticket]:
    """Join as a new member whose answer is still to come."""
    member_id = new_member_id(runtime)
    request = request or join()
    request.member_id = member_id
    return member_id, runtime.send("join_group", request)


def joined(runtime: Runtime, ticket: Ticket) -> JoinGroupResponse:
    answer = runtime.answer(ticket, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
    return answer


def stable_group(runtime: Runtime, count: int = 1) -> list[str]:
    """A group of new members through its first rebalance; the first member leads."""
    tickets = dict(start_join(runtime) for _ in range(count))
    runtime.advance(runtime.settings.group_initial_rebalance_delay_ms * (count + 1))
    return settle(runtime, tickets)


def settle(runtime: Runtime, tickets: dict[str, Ticket]) -> list[str]:
    """Let members that have joined get their assignments: each one its own id as bytes."""
    answers = {each: joined(runtime, ticket) for each, ticket in tickets.items()}
    leader = next(iter(answers.values())).leader
    generation = answers[leader].generation_id
    syncs = [
        runtime.send("sync_group", sync(each, generation)) for each in answers if each != leader
    ]
    assignments = {each: each.encode() for each in tickets}
    syncs.append(runtime.send("sync_group", sync(leader, generation, assignments)))
    for ticket in syncs:
        assert runtime.answer(ticket, SyncGroupResponse).error_code == ErrorCode.NONE
    return list(tickets)


def group_now(runtime: Runtime) -> DescribedGroup:
    return runtime.shard.describe_group(GROUP, 5)


def generation_of(runtime: Runtime, member_id: str) -> int:
    """The generation whose heartbeats the coordinator accepts from a member."""
    for generation in range(50):
        answer = runtime.ask("heartbeat", beat(member_id, generation), HeartbeatResponse)
        if answer.error_code != ErrorCode.ILLEGAL_GENERATION:
            return generation
    raise AssertionError("no generation is accepted")


def committed(runtime: Runtime, topic: str = "orders", partition: int = 0) -> int:
    """The offset a client would find."""
    answer = runtime.shard.fetch_offsets(fetch(topic, partition), version=9, require_stable=False)
    return answer.topics[0].partitions[0].committed_offset


def commit_code(runtime: Runtime, request: OffsetCommitRequest, *, version: int = 9) -> ErrorCode:
    answer = runtime.ask("offset_commit", request, OffsetCommitResponse, version=version)
    return ErrorCode(answer.topics[0].partitions[0].error_code)
