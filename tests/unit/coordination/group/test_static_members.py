"""Static members of classic groups: they come back without a rebalance and fence who they were."""

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from unit.coordination.group.classic_client import (
    commit_code,
    group_now,
    joined,
    settle,
    start_join,
)
from unit.coordination.group.requests import beat, commit, join, leave, subscription, sync
from unit.coordination.group.runtime import Runtime

DELAY_MS = 3000


def static_group(runtime: Runtime) -> tuple[str, str]:
    """A stable group of the static members a (the leader) and b."""
    tickets = {name: runtime.send("join_group", join(instance=name)) for name in ("a", "b")}
    runtime.advance(3 * DELAY_MS)
    by_id = {joined(runtime, each).member_id: each for each in tickets.values()}
    first, second = settle(runtime, by_id)
    return first, second


def heartbeat(runtime: Runtime, member_id: str, instance: str) -> ErrorCode:
    request = beat(member_id, 1, instance=instance)
    return ErrorCode(runtime.ask("heartbeat", request, HeartbeatResponse).error_code)


def test_a_static_member_joins_at_once_without_asking_for_an_id() -> None:
    runtime = Runtime()
    ticket = runtime.send("join_group", join(instance="a"))
    runtime.advance(DELAY_MS)
    assert joined(runtime, ticket).member_id.startswith("a-")


def test_a_follower_that_comes_back_keeps_its_assignment_without_a_rebalance() -> None:
    runtime = Runtime()
    _, old = static_group(runtime)
    answer = runtime.ask("join_group", join(instance="b"), JoinGroupResponse)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert answer.member_id != old
    assert not answer.skip_assignment
    assert group_now(runtime).group_state == "Stable"
    request = sync(answer.member_id, 1, instance="b")
    assert runtime.ask("sync_group", request, SyncGroupResponse).assignment == old.encode()


def test_the_member_it_replaces_is_fenced() -> None:
    runtime = Runtime()
    _, old = static_group(runtime)
    runtime.send("join_group", join(instance="b"))
    assert heartbeat(runtime, old, "b") is ErrorCode.FENCED_INSTANCE_ID
    request = join(old, instance="b")
    answer = runtime.ask("join_group", request, JoinGroupResponse)
    assert answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    late = commit(1, member_id=old, generation=1)
    late.group_instance_id = "b"
    assert commit_code(runtime, late) is ErrorCode.FENCED_INSTANCE_ID


def test_a_leader_that_comes_back_is_told_not_to_assign() -> None:
    runtime = Runtime()
    _, other = static_group(runtime)
    answer = runtime.ask("join_group", join(instance="a"), JoinGroupResponse)
    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert {each.member_id for each in answer.members} == {answer.member_id, other}


@pytest.mark.parametrize("version", [5, 8])
def test_an_older_leader_that_comes_back_is_not_told_that_it_leads(version: int) -> None:
    runtime = Runtime()
    old, _ = static_group(runtime)
    answer = runtime.ask("join_group", join(instance="a"), JoinGroupResponse, version=version)
    assert answer.leader == old
    assert not answer.members


def test_the_new_id_is_kept_through_a_restart() -> None:
    runtime = Runtime()
    _, old = static_group(runtime)
    answer = runtime.ask("join_group", join(instance="b"), JoinGroupResponse)
    runtime.restart()
    assert heartbeat(runtime, answer.member_id, "b") is ErrorCode.NONE
    assert heartbeat(runtime, old, "b") is ErrorCode.FENCED_INSTANCE_ID


def test_a_replacement_that_cannot_be_written_leaves_the_old_member() -> None:
    runtime = Runtime()
    _, old = static_group(runtime)
    runtime.is_disk_full = True
    answer = runtime.ask("join_group", join(instance="b"), JoinGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert heartbeat(runtime, old, "b") is ErrorCode.NONE
    runtime.advance(10_000)
    assert heartbeat(runtime, old, "b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_comes_back_with_other_topics_starts_a_rebalance() -> None:
    runtime = Runtime()
    static_group(runtime)
    changed = join(instance="b", metadata=subscription("payments"))
    assert runtime.is_waiting(runtime.send("join_group", changed))
    assert group_now(runtime).group_state == "PreparingRebalance"


def test_a_member_that_changes_the_chosen_protocol_starts_a_rebalance() -> None:
    runtime = Runtime()
    likes = ("range", "sticky")
    ticket = runtime.send("join_group", join(instance="a", protocols=likes))
    runtime.advance(DELAY_MS)
    settle(runtime, {joined(runtime, ticket).member_id: ticket})
    again = runtime.send("join_group", join(instance="a", protocols=("sticky", "range")))
    assert joined(runtime, again).protocol_name == "sticky"
    assert joined(runtime, again).generation_id == 2


def test_coming_back_while_the_assignment_is_awaited_starts_over() -> None:
    runtime = Runtime()
    tickets = [runtime.send("join_group", join(instance=name)) for name in ("a", "b")]
    runtime.advance(3 * DELAY_MS)
    old = joined(runtime, tickets[1]).member_id
    waiting = runtime.send("sync_group", sync(old, 1, instance="b"))
    runtime.send("join_group", join(instance="b"))
    assert runtime.answer(waiting, SyncGroupResponse).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert group_now(runtime).group_state == "PreparingRebalance"


def test_coming_back_while_joining_fences_the_join_before() -> None:
    runtime = Runtime()
    first = runtime.send("join_group", join(instance="a"))
    second = runtime.send("join_group", join(instance="a"))
    assert runtime.answer(first, JoinGroupResponse).error_code == ErrorCode.FENCED_INSTANCE_ID
    runtime.advance(DELAY_MS)
    assert len(joined(runtime, second).members) == 1


def test_a_static_member_that_is_away_keeps_its_place_through_a_rebalance() -> None:
    runtime = Runtime()
    leader, away = static_group(runtime)
    request = join(leader, instance="a")
    request.session_timeout_ms = 120_000
    waiting = runtime.send("join_group", request)
    assert runtime.is_waiting(waiting)
    runtime.send("heartbeat", beat(away, 1, instance="b"))
    for _ in range(7):
        runtime.advance(9_000)
        runtime.send("heartbeat", beat(away, 1, instance="b"))
    assert {each.member_id for each in joined(runtime, waiting).members} == {leader, away}


def test_an_administrator_removes_a_static_member_by_its_instance() -> None:
    runtime = Runtime()
    _, member_id = static_group(runtime)
    answer = runtime.ask("leave_group", leave(instances=("b",)), LeaveGroupResponse)
    assert answer.members[0].error_code == ErrorCode.NONE
    assert heartbeat(runtime, member_id, "b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_instance_is_an_unknown_member() -> None:
    runtime = Runtime()
    first, _ = static_group(runtime)
    assert heartbeat(runtime, first, "nobody") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_dynamic_member_may_be_in_a_group_with_static_ones() -> None:
    runtime = Runtime()
    first, second = static_group(runtime)
    newcomer, ticket = start_join(runtime)
    tickets = {
        first: runtime.send("join_group", join(first, instance="a")),
        second: runtime.send("join_group", join(second, instance="b")),
        newcomer: ticket,
    }
    assert {joined(runtime, each).generation_id for each in tickets.values()} == {2}
