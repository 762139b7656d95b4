"""Groups that move between the classic and the consumer protocol, with members of both in them."""

from dataclasses import replace

from ottla.coordination.group.embedded_protocol import read_assignment
from ottla.errors import ErrorCode
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.settings.coordination import GroupSettings
from unit.coordination.group.classic_client import (
    commit_code,
    committed,
    group_now,
    joined,
    start_join,
)
from unit.coordination.group.modern_client import (
    code_of,
    described,
    given,
    goodbye,
    hello,
    still_here,
    told_ok,
)
from unit.coordination.group.requests import (
    GROUP,
    assignment,
    beat,
    commit,
    join,
    leave,
    subscription,
    sync,
)
from unit.coordination.group.runtime import Runtime

DELAY_MS = 3000


def classic_reader(runtime: Runtime) -> str:
    """A stable classic group of one member that reads all of orders."""
    member_id, ticket = start_join(runtime)
    runtime.advance(DELAY_MS)
    generation = joined(runtime, ticket).generation_id
    plan = {member_id: assignment(orders=[0, 1, 2])}
    runtime.ask("sync_group", sync(member_id, generation, plan), SyncGroupResponse)
    return member_id


def heartbeat(runtime: Runtime, member_id: str, generation: int) -> ErrorCode:
    answer = runtime.ask("heartbeat", beat(member_id, generation), HeartbeatResponse)
    return ErrorCode(answer.error_code)


def rejoin(
    runtime: Runtime, member_id: str, owned: dict[str, list[int]] | None = None
) -> JoinGroupResponse:
    request = join(member_id, metadata=subscription("orders", owned=owned))
    answer = runtime.ask("join_group", request, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer


def assigned(runtime: Runtime, member_id: str, generation: int) -> dict[str, list[int]]:
    answer = runtime.ask("sync_group", sync(member_id, generation), SyncGroupResponse)
    assert answer.error_code == ErrorCode.NONE
    found = read_assignment(answer.assignment).assigned_partitions
    return {each.topic: each.partitions for each in found}


def mixed_group(runtime: Runtime) -> str:
    """A stable group of a classic guest (orders 0, 1) and the member `new` (orders 2)."""
    guest = classic_reader(runtime)
    told_ok(runtime, hello("new"))
    again = rejoin(runtime, guest)
    assigned(runtime, guest, again.generation_id)
    told_ok(runtime, still_here(runtime, "new", 2))
    assert described(runtime).group_state == "Stable"
    return guest


def test_a_new_consumer_makes_a_classic_group_a_consumer_group() -> None:
    runtime = Runtime()
    guest = classic_reader(runtime)
    commit_code(runtime, commit(5, member_id=guest, generation=1))
    newcomer = told_ok(runtime, hello("new"))
    assert given(runtime, newcomer) == {}, "the classic member still has everything"
    assert newcomer.member_epoch == 2
    assert group_now(runtime).group_state == "Dead"
    assert {each.member_type for each in described(runtime).members} == {0, 1}
    assert committed(runtime) == 5


def test_a_guest_gives_up_and_goes_on_by_the_old_requests() -> None:
    runtime = Runtime()
    guest = classic_reader(runtime)
    told_ok(runtime, hello("new"))
    assert heartbeat(runtime, guest, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    again = rejoin(runtime, guest)
    assert again.generation_id == 2
    assert again.leader == ""
    assert assigned(runtime, guest, 2) == {"orders": [0, 1]}
    answer = told_ok(runtime, still_here(runtime, "new", 2))
    assert given(runtime, answer) == {"orders": [2]}
    assert heartbeat(runtime, guest, 2) is ErrorCode.NONE
    assert commit_code(runtime, commit(9, member_id=guest, generation=2)) is ErrorCode.NONE
    old = commit(9, member_id=guest, generation=1)
    assert commit_code(runtime, old) is ErrorCode.ILLEGAL_GENERATION


def test_a_cooperative_guest_gives_up_in_two_steps() -> None:
    runtime = Runtime()
    guest = classic_reader(runtime)
    told_ok(runtime, hello("new"))
    first = rejoin(runtime, guest, {"orders": [0, 1, 2]})
    assert first.generation_id == 1
    assert assigned(runtime, guest, 1) == {"orders": [0, 1]}
    assert heartbeat(runtime, guest, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    second = rejoin(runtime, guest, {"orders": [0, 1]})
    assert second.generation_id == 2
    assert assigned(runtime, guest, 2) == {"orders": [0, 1]}


def test_a_classic_member_may_join_a_consumer_group() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("new"))
    required = runtime.ask("join_group", join(), JoinGroupResponse)
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    guest = rejoin(runtime, required.member_id)
    assert (guest.generation_id, guest.protocol_name) == (3, "range")
    assert assigned(runtime, guest.member_id, 3) == {}
    told_ok(runtime, still_here(runtime, "new", 2, {"orders": [0, 1, 2]}))
    told_ok(runtime, still_here(runtime, "new", 2, {"orders": [0, 1]}))
    assert heartbeat(runtime, guest.member_id, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    again = rejoin(runtime, guest.member_id)
    assert assigned(runtime, guest.member_id, again.generation_id) != {}


def test_guests_that_do_not_fit_are_refused() -> None:
    runtime = Runtime()
    guest = mixed_group(runtime)
    other = join("x", protocols=("sticky",))
    answer = runtime.ask("join_group", other, JoinGroupResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unreadable = join("x", metadata=b"\x00")
    answer = runtime.ask("join_group", unreadable, JoinGroupResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert heartbeat(runtime, guest, 7) is ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(runtime, "new", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    wrong = runtime.ask("sync_group", sync(guest, 2, protocol="sticky"), SyncGroupResponse)
    assert wrong.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_guest_that_does_not_rejoin_in_time_is_removed() -> None:
    runtime = Runtime(replace(GroupSettings(), group_consumer_session_timeout_ms=300_000))
    guest = mixed_group(runtime)
    told_ok(runtime, hello("third"))
    for _ in range(20):
        code = heartbeat(runtime, guest, 2)
        assert code is ErrorCode.REBALANCE_IN_PROGRESS
        runtime.advance(3_000)
    assert heartbeat(runtime, guest, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_guest_that_is_silent_is_removed_after_its_own_session() -> None:
    runtime = Runtime()
    guest = mixed_group(runtime)
    runtime.advance(10_000)
    assert heartbeat(runtime, guest, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_guest_leaves_by_the_old_request() -> None:
    runtime = Runtime()
    guest = mixed_group(runtime)
    answer = runtime.ask("leave_group", leave(guest, "stranger"), LeaveGroupResponse)
    assert [each.error_code for each in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    answer_new = told_ok(runtime, still_here(runtime, "new", 2))
    assert given(runtime, answer_new) == {"orders": [0, 1, 2]}


def test_the_group_is_classic_again_when_the_last_new_consumer_leaves() -> None:
    runtime = Runtime()
    guest = mixed_group(runtime)
    commit_code(runtime, commit(5, member_id=guest, generation=2))
    told_ok(runtime, goodbye("new"))
    runtime.advance(0)
    assert group_now(runtime).group_state == "PreparingRebalance"
    assert described(runtime).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert heartbeat(runtime, guest, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    ticket = runtime.send("join_group", join(guest))
    answer = joined(runtime, ticket)
    assert (answer.leader, answer.generation_id) == (guest, 3)
    assert committed(runtime) == 5


def test_a_group_that_just_became_classic_rebalances_after_a_restart() -> None:
    runtime = Runtime()
    mixed_group(runtime)
    told_ok(runtime, goodbye("new"))
    runtime.restart()
    assert group_now(runtime).group_state == "PreparingRebalance"


def test_a_group_becomes_classic_when_the_last_new_consumer_expires() -> None:
    runtime = Runtime(replace(GroupSettings(), group_consumer_session_timeout_ms=5_000))
    guest = mixed_group(runtime)
    runtime.advance(5_000)
    assert heartbeat(runtime, guest, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert group_now(runtime).group_state == "PreparingRebalance"


def test_a_move_that_cannot_be_written_does_not_happen() -> None:
    runtime = Runtime()
    guest = classic_reader(runtime)
    runtime.is_disk_full = True
    assert code_of(runtime, hello("new")) is ErrorCode.NOT_COORDINATOR
    assert group_now(runtime).group_state == "Stable"
    runtime.is_disk_full = False
    told_ok(runtime, hello("new"))
    runtime.is_disk_full = True
    assert code_of(runtime, goodbye("new")) is ErrorCode.NOT_COORDINATOR
    assert len(described(runtime).members) == 2
    assert heartbeat(runtime, guest, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_wait_in_a_classic_group_are_told_to_join_again() -> None:
    runtime = Runtime()
    _, waiting = start_join(runtime)
    told_ok(runtime, hello("new"))
    assert runtime.answer(waiting, JoinGroupResponse).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_that_was_under_way_still_happens_after_the_move() -> None:
    runtime = Runtime()
    guest = classic_reader(runtime)
    runtime.send("join_group", join(instance="a"))
    answer = told_ok(runtime, hello("new", instance="a"))
    assert answer.member_epoch == 2
    rejoin(runtime, guest)
    answer = told_ok(runtime, still_here(runtime, "new", 2))
    assert given(runtime, answer) == {"orders": [2]}


def test_the_migration_policy_is_kept() -> None:
    forbidden = replace(GroupSettings(), group_consumer_migration_policy="disabled")
    runtime = Runtime(forbidden)
    classic_reader(runtime)
    assert code_of(runtime, hello("new")) is ErrorCode.GROUP_ID_NOT_FOUND

    runtime = Runtime(replace(GroupSettings(), group_consumer_migration_policy="upgrade"))
    mixed_group(runtime)
    told_ok(runtime, goodbye("new"))
    assert described(runtime).group_state == "Assigning"


def test_a_group_of_other_clients_than_consumers_stays_classic() -> None:
    runtime = Runtime()
    request = join()
    request.protocol_type = "connect"
    runtime.send("join_group", request, version=3)
    assert code_of(runtime, hello("new")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_group_changes_its_kind_with_its_next_member_and_keeps_counting() -> None:
    runtime = Runtime()
    guest = classic_reader(runtime)
    commit_code(runtime, commit(5, member_id=guest, generation=1))
    runtime.send("leave_group", leave(guest))
    answer = told_ok(runtime, hello("new"))
    assert answer.member_epoch == 3, "the empty generation was 2"
    told_ok(runtime, goodbye("new"))
    _, ticket = start_join(runtime)
    runtime.advance(DELAY_MS)
    assert joined(runtime, ticket).generation_id == 5
    assert committed(runtime) == 5
    runtime.restart()
    assert committed(runtime) == 5


def test_a_simple_group_becomes_a_consumer_group_and_keeps_its_offsets() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    told_ok(runtime, hello("new"))
    assert committed(runtime) == 5
    runtime.restart()
    assert described(runtime).group_state == "Stable"
    assert committed(runtime) == 5


def test_a_static_classic_member_is_replaced_by_a_new_one_of_the_same_instance() -> None:
    runtime = Runtime()
    ticket = runtime.send("join_group", join(instance="a"))
    runtime.advance(DELAY_MS)
    old = joined(runtime, ticket).member_id
    plan = {old: assignment(orders=[0, 1, 2])}
    runtime.ask("sync_group", sync(old, 1, plan, instance="a"), SyncGroupResponse)
    answer = told_ok(runtime, hello("new", instance="a"))
    assert given(runtime, answer) == {"orders": [0, 1, 2]}
    assert [each.member_id for each in described(runtime).members] == ["new"]
    fenced = runtime.ask("heartbeat", beat(old, 1, instance="a"), HeartbeatResponse)
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_the_last_static_new_consumer_replaced_by_a_classic_one_makes_the_group_classic() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("new", instance="a"))
    answer = runtime.ask("join_group", join(instance="a"), JoinGroupResponse)
    assert answer.error_code == ErrorCode.NONE
    runtime.advance(0)
    assert group_now(runtime).group_state == "PreparingRebalance"
    again = runtime.send("join_group", join(answer.member_id, instance="a"))
    assert joined(runtime, again).leader == answer.member_id


def test_groups_are_listed_by_state_and_type() -> None:
    runtime = Runtime()
    classic_reader(runtime)
    runtime.send("offset_commit", commit(1, group="simple"))
    other = hello("new")
    other.group_id = "modern"
    told_ok(runtime, other)

    def listed(states: list[str], types: list[str]) -> list[str]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return sorted(each.group_id for each in runtime.shard.list_groups(request))

    assert listed([], []) == ["modern", GROUP, "simple"]
    assert listed(["stable"], []) == ["modern", GROUP]
    assert listed(["Empty"], []) == ["simple"]
    assert listed([], ["Consumer"]) == ["modern"]
    assert listed(["Stable"], ["classic"]) == [GROUP]
    assert listed(["Dead"], []) == []
