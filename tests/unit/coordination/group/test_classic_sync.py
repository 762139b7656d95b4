"""SyncGroup and Heartbeat of classic groups, sessions, and members that go."""

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from unit.coordination.group.classic_client import (
    group_now,
    joined,
    new_member_id,
    stable_group,
    start_join,
)
from unit.coordination.group.requests import GROUP, beat, join, leave, subscription, sync
from unit.coordination.group.runtime import Runtime

DELAY_MS = 3000


def synced(runtime: Runtime, request: object, version: int = 5) -> SyncGroupResponse:
    return runtime.ask("sync_group", request, SyncGroupResponse, version=version)


def heartbeat(runtime: Runtime, member_id: str, generation: int) -> ErrorCode:
    answer = runtime.ask("heartbeat", beat(member_id, generation), HeartbeatResponse)
    return ErrorCode(answer.error_code)


def two_joined(runtime: Runtime) -> tuple[str, str]:
    """Leader and follower that have joined and not yet synced."""
    tickets = dict(start_join(runtime) for _ in range(2))
    runtime.advance(3 * DELAY_MS)
    leader = joined(runtime, next(iter(tickets.values()))).leader
    return leader, next(each for each in tickets if each != leader)


def test_followers_wait_for_the_leader_and_all_get_their_own_assignment() -> None:
    runtime = Runtime()
    leader, follower = two_joined(runtime)
    waiting = runtime.send("sync_group", sync(follower, 1))
    assert runtime.is_waiting(waiting)
    mine = synced(runtime, sync(leader, 1, {leader: b"mine", follower: b"theirs"}))
    assert mine.assignment == b"mine"
    assert runtime.answer(waiting, SyncGroupResponse).assignment == b"theirs"
    assert group_now(runtime).group_state == "Stable"


def test_a_late_follower_gets_its_assignment_at_once() -> None:
    runtime = Runtime()
    leader, follower = two_joined(runtime)
    synced(runtime, sync(leader, 1, {follower: b"theirs"}))
    assert synced(runtime, sync(follower, 1)).assignment == b"theirs"


def test_a_member_the_leader_forgot_gets_nothing() -> None:
    runtime = Runtime()
    leader, follower = two_joined(runtime)
    synced(runtime, sync(leader, 1, {leader: b"all"}))
    answer = synced(runtime, sync(follower, 1))
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"")


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_sync_is_answered(version: int) -> None:
    runtime = Runtime()
    leader, _ = two_joined(runtime)
    answer = synced(runtime, sync(leader, 1, {leader: b"x"}), version)
    assert answer.assignment == b"x"


def test_syncs_that_do_not_fit_are_refused() -> None:
    runtime = Runtime()
    unknown_group = synced(runtime, sync("anybody", 1))
    assert unknown_group.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    leader, follower = two_joined(runtime)
    wrong = {
        ErrorCode.UNKNOWN_MEMBER_ID: sync("stranger", 1),
        ErrorCode.ILLEGAL_GENERATION: sync(leader, 2),
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: sync(leader, 1, protocol="sticky"),
    }
    for code, request in wrong.items():
        assert synced(runtime, request).error_code == code
    no_name = sync(follower, 1, protocol=None)
    assert synced(runtime, no_name).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    no_group = sync(leader, 1)
    no_group.group_id = ""
    assert synced(runtime, no_group).error_code == ErrorCode.INVALID_GROUP_ID


def test_members_that_never_sync_are_put_out() -> None:
    runtime = Runtime()
    leader, follower = two_joined(runtime)
    synced(runtime, sync(leader, 1, {leader: b"x"}))
    for _ in range(20):
        runtime.advance(3000)
        heartbeat(runtime, leader, 1)
        heartbeat(runtime, follower, 1)
    assert heartbeat(runtime, leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert heartbeat(runtime, follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_tells_of_a_rebalance() -> None:
    runtime = Runtime()
    leader, follower = stable_group(runtime, 2)
    assert heartbeat(runtime, follower, 1) is ErrorCode.NONE
    runtime.send("join_group", join(leader))
    assert heartbeat(runtime, follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_that_do_not_fit_are_refused() -> None:
    runtime = Runtime()
    assert heartbeat(runtime, "anybody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    (member_id,) = stable_group(runtime)
    assert heartbeat(runtime, member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(runtime, "stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_after_its_session() -> None:
    runtime = Runtime()
    leader, silent = stable_group(runtime, 2)
    for _ in range(3):
        runtime.advance(3000)
        assert heartbeat(runtime, leader, 1) is ErrorCode.NONE
    runtime.advance(1000)
    assert heartbeat(runtime, silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(runtime, leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_waits_needs_no_heartbeats() -> None:
    runtime = Runtime()
    leader, other = stable_group(runtime, 2)
    waiting = runtime.send("join_group", join(leader))
    for _ in range(6):
        runtime.advance(9000)
        heartbeat(runtime, other, 1)
    runtime.advance(6000)
    assert joined(runtime, waiting).generation_id == 2


def test_a_group_whose_last_member_expires_is_empty() -> None:
    runtime = Runtime()
    stable_group(runtime)
    runtime.advance(10_000)
    assert group_now(runtime).group_state == "Empty"


def test_a_member_that_leaves_starts_a_rebalance() -> None:
    runtime = Runtime()
    leader, follower = stable_group(runtime, 2)
    answer = runtime.ask("leave_group", leave(follower), LeaveGroupResponse)
    assert [each.error_code for each in answer.members] == [ErrorCode.NONE]
    assert heartbeat(runtime, leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_several_members_leave_at_once_each_with_its_own_result() -> None:
    runtime = Runtime()
    first, second = stable_group(runtime, 2)
    request = leave(first, "stranger", second, instances=("nobody",))
    answer = runtime.ask("leave_group", request, LeaveGroupResponse)
    assert [each.error_code for each in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert group_now(runtime).group_state == "Empty"


@pytest.mark.parametrize("version", range(3))
def test_old_versions_of_leave_have_one_result(version: int) -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        request = LeaveGroupRequest(group_id=GROUP, member_id=member_id)
        answer = runtime.ask("leave_group", request, LeaveGroupResponse, version=version)
        assert answer.error_code == code


def test_a_pending_member_may_leave() -> None:
    runtime = Runtime()
    pending = new_member_id(runtime)
    answer = runtime.ask("leave_group", leave(pending), LeaveGroupResponse)
    assert answer.members[0].error_code == ErrorCode.NONE


def test_leaving_an_unknown_group_is_an_unknown_member() -> None:
    answer = Runtime().ask("leave_group", leave("anybody"), LeaveGroupResponse)
    assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    runtime = Runtime()
    leader, _ = stable_group(runtime, 2)
    waiting = runtime.send("join_group", join(leader))
    runtime.send("leave_group", leave(leader))
    assert runtime.answer(waiting, JoinGroupResponse).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_client_that_goes_while_it_joins_under_an_unknown_id_is_dropped() -> None:
    runtime = Runtime()
    ticket = runtime.send("join_group", join(), version=3)
    runtime.carry_out(runtime.shard.forget(ticket, runtime.now_ms))
    assert group_now(runtime).group_state == "Empty"


def test_a_client_that_goes_while_it_waits_may_come_back_with_its_id() -> None:
    runtime = Runtime()
    member_id, ticket = start_join(runtime)
    runtime.carry_out(runtime.shard.forget(ticket, runtime.now_ms))
    again = runtime.send("join_group", join(member_id))
    runtime.advance(DELAY_MS)
    assert joined(runtime, again).member_id == member_id
    assert runtime.is_waiting(ticket)


def test_a_client_that_went_and_does_not_come_back_holds_nobody_up() -> None:
    runtime = Runtime()
    leader, gone = stable_group(runtime, 2)
    changed = join(gone, metadata=subscription("payments"))
    ticket = runtime.send("join_group", changed)
    runtime.carry_out(runtime.shard.forget(ticket, runtime.now_ms))
    waiting = runtime.send("join_group", join(leader))
    runtime.advance(10_000)
    assert [each.member_id for each in joined(runtime, waiting).members] == [leader]


def test_a_stable_group_survives_a_restart() -> None:
    runtime = Runtime()
    members = stable_group(runtime, 2)
    runtime.restart()
    for member_id in members:
        assert heartbeat(runtime, member_id, 1) is ErrorCode.NONE
        assert synced(runtime, sync(member_id, 1)).assignment == member_id.encode()


def test_members_are_given_a_session_after_a_restart() -> None:
    runtime = Runtime()
    stable_group(runtime, 2)
    runtime.advance(9_000)
    runtime.restart()
    runtime.advance(9_999)
    assert group_now(runtime).group_state == "Stable"
    runtime.advance(1)
    assert group_now(runtime).group_state == "Empty"


def test_an_assignment_that_cannot_be_written_is_not_handed_out() -> None:
    runtime = Runtime()
    leader, follower = two_joined(runtime)
    waiting = runtime.send("sync_group", sync(follower, 1))
    runtime.is_disk_full = True
    refused = synced(runtime, sync(leader, 1, {leader: b"a", follower: b"b"}))
    assert refused.error_code == ErrorCode.NOT_COORDINATOR
    assert runtime.answer(waiting, SyncGroupResponse).error_code == ErrorCode.NOT_COORDINATOR
    assert group_now(runtime).group_state == "PreparingRebalance"
    runtime.is_disk_full = False
    tickets = [runtime.send("join_group", join(each)) for each in (leader, follower)]
    assert {joined(runtime, each).generation_id for each in tickets} == {2}


def test_an_empty_group_that_cannot_be_written_is_written_later() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    runtime.is_disk_full = True
    answer = runtime.ask("leave_group", leave(member_id), LeaveGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    runtime.is_disk_full = False
    runtime.advance(1000)
    assert group_now(runtime).group_state == "Empty"


def test_a_coordinator_that_resigns_tells_those_that_wait() -> None:
    runtime = Runtime()
    _, ticket = start_join(runtime)
    runtime.carry_out(runtime.shard.resign())
    assert runtime.answer(ticket, JoinGroupResponse).error_code == ErrorCode.NOT_COORDINATOR
