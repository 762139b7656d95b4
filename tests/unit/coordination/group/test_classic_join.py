"""JoinGroup: ids, protocols, the first rebalance, and who may come in."""

from dataclasses import replace

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.settings.coordination import GroupSettings
from unit.coordination.group.classic_client import (
    group_now,
    joined,
    new_member_id,
    settle,
    stable_group,
    start_join,
)
from unit.coordination.group.requests import GROUP, join, subscription, sync
from unit.coordination.group.runtime import Runtime

DELAY_MS = 3000


def refusal(runtime: Runtime, request: object, version: int = 9) -> ErrorCode:
    answer = runtime.ask("join_group", request, JoinGroupResponse, version=version)
    return ErrorCode(answer.error_code)


def test_a_new_member_is_given_an_id_and_joins_with_it() -> None:
    runtime = Runtime()
    member_id, ticket = start_join(runtime)
    assert runtime.is_waiting(ticket)
    runtime.advance(DELAY_MS)
    answer = joined(runtime, ticket)
    assert answer.member_id == answer.leader == member_id
    assert answer.generation_id == 1
    assert [each.member_id for each in answer.members] == [member_id]


def test_an_old_client_joins_without_knowing_its_id() -> None:
    runtime = Runtime()
    ticket = runtime.send("join_group", join(), version=3)
    runtime.advance(DELAY_MS)
    assert joined(runtime, ticket).member_id


@pytest.mark.parametrize("version", range(10))
def test_every_version_gets_an_answer_it_can_read(version: int) -> None:
    runtime = Runtime()
    ticket = runtime.send("join_group", join(), version=version)
    if version >= 4:
        member_id = runtime.answer(ticket, JoinGroupResponse).member_id
        ticket = runtime.send("join_group", join(member_id), version=version)
    runtime.advance(DELAY_MS)
    assert joined(runtime, ticket).protocol_name == "range"


def test_the_first_version_uses_the_session_timeout_for_the_rebalance() -> None:
    runtime = Runtime()
    request = join()
    request.rebalance_timeout_ms = -1
    ticket = runtime.send("join_group", request, version=0)
    runtime.advance(DELAY_MS)
    assert joined(runtime, ticket).generation_id == 1


def test_a_group_without_a_name_is_refused() -> None:
    assert refusal(Runtime(), join(group="")) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    request = join()
    request.session_timeout_ms = session_ms
    assert refusal(Runtime(), request) is ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_unknown_member_id_is_refused() -> None:
    runtime = Runtime()
    assert refusal(runtime, join("stranger")) is ErrorCode.UNKNOWN_MEMBER_ID
    stable_group(runtime)
    assert refusal(runtime, join("stranger")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_refused_join_leaves_no_group_behind() -> None:
    runtime = Runtime()
    request = join()
    request.protocols = []
    assert refusal(runtime, request) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert runtime.shard.describe_group(GROUP, 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_without_a_shared_protocol_is_refused() -> None:
    runtime = Runtime()
    stable_group(runtime)
    assert refusal(runtime, join(protocols=("sticky",))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other = join()
    other.protocol_type = "connect"
    assert refusal(runtime, other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_most_votes_choose_among_the_protocols_all_members_support() -> None:
    runtime = Runtime()
    likes = [("sticky", "range"), ("range", "sticky", "own"), ("range", "sticky")]
    tickets = [start_join(runtime, join(protocols=each))[1] for each in likes]
    runtime.advance(4 * DELAY_MS)
    assert {joined(runtime, each).protocol_name for each in tickets} == {"range"}


def test_the_first_rebalance_waits_for_more_members() -> None:
    runtime = Runtime()
    _, first = start_join(runtime)
    runtime.advance(DELAY_MS - 1)
    _, second = start_join(runtime)
    runtime.advance(1)
    assert runtime.is_waiting(first), "a member that just came prolongs the delay"
    runtime.advance(DELAY_MS)
    assert joined(runtime, first).generation_id == joined(runtime, second).generation_id == 1


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout() -> None:
    runtime = Runtime(replace(GroupSettings(), group_initial_rebalance_delay_ms=25_000))
    _, first = start_join(runtime)
    for _ in range(11):
        runtime.advance(5_000)
        start_join(runtime)
    assert runtime.is_waiting(first)
    runtime.advance(5_000)
    assert not runtime.is_waiting(first)


def test_a_pending_id_delays_a_rebalance_until_its_session_is_over() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    new_member_id(runtime)
    ticket = runtime.send("join_group", join(member_id))
    assert runtime.is_waiting(ticket)
    runtime.advance(10_000)
    assert joined(runtime, ticket).generation_id == 2


def test_only_the_leader_is_told_of_the_members() -> None:
    runtime = Runtime()
    tickets = dict(start_join(runtime) for _ in range(3))
    runtime.advance(4 * DELAY_MS)
    answers = {each: joined(runtime, ticket) for each, ticket in tickets.items()}
    leader = answers[next(iter(answers))].leader
    for member_id, answer in answers.items():
        told = {each.member_id for each in answer.members}
        assert told == (set(tickets) if member_id == leader else set())


def test_a_follower_that_joins_again_unchanged_starts_no_rebalance() -> None:
    runtime = Runtime()
    _, follower = stable_group(runtime, 2)
    answer = runtime.ask("join_group", join(follower), JoinGroupResponse)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert group_now(runtime).group_state == "Stable"


def test_a_follower_that_subscribes_anew_starts_a_rebalance() -> None:
    runtime = Runtime()
    leader, follower = stable_group(runtime, 2)
    changed = join(follower, metadata=subscription("payments"))
    tickets = {follower: runtime.send("join_group", changed)}
    assert group_now(runtime).group_state == "PreparingRebalance"
    tickets[leader] = runtime.send("join_group", join(leader))
    settle(runtime, tickets)
    assert joined(runtime, tickets[leader]).generation_id == 2


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    runtime = Runtime()
    leader, _ = stable_group(runtime, 2)
    assert runtime.is_waiting(runtime.send("join_group", join(leader)))
    assert group_now(runtime).group_state == "PreparingRebalance"


def test_a_lost_join_answer_is_given_again_before_the_assignment() -> None:
    runtime = Runtime()
    member_id, ticket = start_join(runtime)
    runtime.advance(DELAY_MS)
    first = joined(runtime, ticket)
    again = runtime.ask("join_group", join(member_id), JoinGroupResponse)
    assert (again.generation_id, again.members) == (first.generation_id, first.members)


def test_a_retried_join_answers_the_one_before_it_too() -> None:
    runtime = Runtime()
    member_id, first = start_join(runtime)
    second = runtime.send("join_group", join(member_id))
    assert runtime.answer(first, JoinGroupResponse).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    runtime.advance(DELAY_MS)
    assert joined(runtime, second).generation_id == 1


def test_members_that_do_not_rejoin_in_time_are_left_out() -> None:
    runtime = Runtime()
    leader, _ = stable_group(runtime, 2)
    ticket = runtime.send("join_group", join(leader))
    runtime.advance(60_000)
    assert [each.member_id for each in joined(runtime, ticket).members] == [leader]


def test_a_leader_that_does_not_rejoin_is_replaced() -> None:
    runtime = Runtime()
    _, follower = stable_group(runtime, 2)
    changed = join(follower, metadata=subscription("payments"))
    ticket = runtime.send("join_group", changed)
    runtime.advance(60_000)
    assert joined(runtime, ticket).leader == follower


def test_a_full_group_takes_no_new_member() -> None:
    runtime = Runtime(replace(GroupSettings(), group_max_size=2))
    stable_group(runtime, 2)
    assert refusal(runtime, join()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refusal(runtime, join(), version=3) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_over_a_lowered_limit_rebalances_when_it_is_loaded() -> None:
    runtime = Runtime()
    members = stable_group(runtime, 3)
    runtime.settings = replace(GroupSettings(), group_max_size=2)
    runtime.restart()
    assert group_now(runtime).group_state == "PreparingRebalance"
    tickets = [runtime.send("join_group", join(each)) for each in members]
    codes = sorted(runtime.answer(each, JoinGroupResponse).error_code for each in tickets)
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_a_new_member_that_waits_too_long_in_its_join_is_taken_for_gone() -> None:
    runtime = Runtime()
    leader, _ = stable_group(runtime, 2)
    long_join = join(leader)
    long_join.rebalance_timeout_ms = 600_000
    runtime.send("join_group", long_join)
    newcomer = runtime.send("join_group", join(), version=3)
    for _ in range(20):
        runtime.advance(5_000)
    assert not runtime.is_waiting(newcomer)


def test_a_join_while_the_assignment_is_awaited_cancels_the_syncs() -> None:
    runtime = Runtime()
    tickets = dict(start_join(runtime) for _ in range(2))
    runtime.advance(3 * DELAY_MS)
    leader = joined(runtime, next(iter(tickets.values()))).leader
    follower = next(each for each in tickets if each != leader)
    waiting = runtime.send("sync_group", sync(follower, 1))
    start_join(runtime)
    code = runtime.answer(waiting, SyncGroupResponse).error_code
    assert code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_lost_its_members_while_nothing_could_be_written_takes_new_ones() -> None:
    runtime = Runtime()
    stable_group(runtime, 2)
    runtime.is_disk_full = True
    runtime.advance(120_000)
    assert group_now(runtime).group_state == "PreparingRebalance"
    assert not group_now(runtime).members
    member_id = new_member_id(runtime)
    runtime.is_disk_full = False
    ticket = runtime.send("join_group", join(member_id))
    runtime.advance(DELAY_MS)
    assert joined(runtime, ticket).leader == member_id
