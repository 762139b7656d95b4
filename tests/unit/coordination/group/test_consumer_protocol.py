"""ConsumerGroupHeartbeat: joining, epochs, giving up before giving, leaving, subscriptions."""

from dataclasses import replace

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.offset_commit import OffsetCommitResponse
from ottla.settings.coordination import GroupSettings
from unit.coordination.group.classic_client import commit_code, committed
from unit.coordination.group.modern_client import (
    code_of,
    described,
    given,
    goodbye,
    hello,
    still_here,
    tell,
    told_ok,
)
from unit.coordination.group.requests import GROUP, commit, fetch, leave
from unit.coordination.group.runtime import Runtime

SESSION_MS = 45_000


def pair(runtime: Runtime) -> None:
    """A stable group: `one` has orders 0 and 1 (at epoch 3), `two` has orders 2."""
    told_ok(runtime, hello("one"))
    told_ok(runtime, hello("two"))
    told_ok(runtime, still_here(runtime, "one", 2, {"orders": [0, 1, 2]}))
    told_ok(runtime, still_here(runtime, "one", 2, {"orders": [0, 1]}))
    told_ok(runtime, still_here(runtime, "two", 3))
    assert described(runtime).group_state == "Stable"


def test_the_first_member_gets_everything_at_once() -> None:
    runtime = Runtime()
    answer = told_ok(runtime, hello("one"))
    assert (answer.member_id, answer.member_epoch) == ("one", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert given(runtime, answer) == {"orders": [0, 1, 2]}
    assert described(runtime).group_state == "Stable"


def test_an_old_client_is_given_an_id() -> None:
    runtime = Runtime()
    assert tell(runtime, hello(""), version=0).member_id
    assert tell(runtime, hello("")).error_code == ErrorCode.INVALID_REQUEST


def test_a_partition_is_given_up_before_it_is_given() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    newcomer = told_ok(runtime, hello("two"))
    assert given(runtime, newcomer) == {}
    assert newcomer.member_epoch == 3

    asked = told_ok(runtime, still_here(runtime, "one", 2, {"orders": [0, 1, 2]}))
    assert given(runtime, asked) == {"orders": [0, 1]}
    assert asked.member_epoch == 2, "it moves on when it has given up"
    assert given(runtime, told_ok(runtime, still_here(runtime, "two", 3))) is None

    done = told_ok(runtime, still_here(runtime, "one", 2, {"orders": [0, 1]}))
    assert done.member_epoch == 3
    assert given(runtime, told_ok(runtime, still_here(runtime, "two", 3))) == {"orders": [2]}
    assert described(runtime).group_state == "Stable"


def test_a_heartbeat_with_nothing_new_writes_nothing() -> None:
    runtime = Runtime()
    pair(runtime)
    written = len(runtime.log)
    assert given(runtime, told_ok(runtime, still_here(runtime, "one", 3))) is None
    assert len(runtime.log) == written


def test_a_member_that_does_not_give_up_in_time_is_removed() -> None:
    runtime = Runtime(replace(GroupSettings(), group_consumer_session_timeout_ms=60_000))
    told_ok(runtime, hello("one"))
    told_ok(runtime, hello("two"))
    told_ok(runtime, still_here(runtime, "one", 2, {"orders": [0, 1, 2]}))
    runtime.advance(29_999)
    told_ok(runtime, still_here(runtime, "one", 2))
    runtime.advance(1)
    assert code_of(runtime, still_here(runtime, "one", 2)) is ErrorCode.UNKNOWN_MEMBER_ID
    answer = told_ok(runtime, still_here(runtime, "two", 3))
    assert given(runtime, answer) == {"orders": [0, 1, 2]}


def test_a_silent_member_is_removed_after_its_session() -> None:
    runtime = Runtime()
    pair(runtime)
    runtime.advance(SESSION_MS - 1)
    told_ok(runtime, still_here(runtime, "one", 3))
    runtime.advance(1)
    assert [each.member_id for each in described(runtime).members] == ["one"]
    assert described(runtime).group_state == "Assigning"


def test_a_member_that_leaves_frees_its_partitions() -> None:
    runtime = Runtime()
    pair(runtime)
    assert told_ok(runtime, goodbye("one")).member_epoch == -1
    answer = told_ok(runtime, still_here(runtime, "two", 3))
    assert given(runtime, answer) == {"orders": [0, 1, 2]}
    told_ok(runtime, goodbye("two"))
    assert described(runtime).group_state == "Empty"


def test_a_wrong_epoch_is_fenced_and_the_member_may_join_again() -> None:
    runtime = Runtime()
    pair(runtime)
    assert code_of(runtime, still_here(runtime, "one", 4)) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code_of(runtime, still_here(runtime, "two", 2)) is ErrorCode.FENCED_MEMBER_EPOCH
    again = told_ok(runtime, hello("two"))
    assert given(runtime, again) == {"orders": [2]}


def test_a_lost_answer_is_given_again() -> None:
    runtime = Runtime()
    pair(runtime)
    told_ok(runtime, goodbye("two"))
    lost = told_ok(runtime, still_here(runtime, "one", 3, {"orders": [0, 1]}))
    again = told_ok(runtime, still_here(runtime, "one", 3, {"orders": [0, 1]}))
    assert (again.member_epoch, again.assignment) == (lost.member_epoch, lost.assignment)
    assert code_of(runtime, still_here(runtime, "one", 3)) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_full_request_gets_the_whole_assignment() -> None:
    runtime = Runtime()
    pair(runtime)
    request = hello("one")
    request.member_epoch = 2
    assert given(runtime, told_ok(runtime, request)) == {"orders": [0, 1]}


def test_unknown_groups_and_members_are_refused() -> None:
    runtime = Runtime()
    assert code_of(runtime, still_here(runtime, "one", 2)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(runtime, goodbye("one")) is ErrorCode.GROUP_ID_NOT_FOUND
    pair(runtime)
    assert code_of(runtime, still_here(runtime, "three", 2)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(runtime, goodbye("three")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_that_contradict_themselves_are_refused() -> None:
    runtime = Runtime()
    wrong = [hello("one") for _ in range(7)]
    wrong[0].group_id = ""
    wrong[1].rebalance_timeout_ms = -1
    wrong[2].topic_partitions = None
    wrong[3].subscribed_topic_names = None
    wrong[4].instance_id = ""
    wrong[5].member_epoch = -3
    wrong[6].member_epoch = -2
    for request in wrong:
        assert code_of(runtime, request) is ErrorCode.INVALID_REQUEST
    assert described(runtime).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_assignor_the_broker_does_not_offer_is_refused() -> None:
    runtime = Runtime()
    request = hello("one")
    request.server_assignor = "own"
    assert code_of(runtime, request) is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_most_members_choose_the_assignor() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    assert described(runtime).assignor_name == "uniform"
    request = hello("two")
    request.server_assignor = "range"
    told_ok(runtime, request)
    assert described(runtime).assignor_name == "range"


def test_a_full_group_takes_no_new_member() -> None:
    runtime = Runtime(replace(GroupSettings(), group_consumer_max_size=1))
    told_ok(runtime, hello("one"))
    assert code_of(runtime, hello("two")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    told_ok(runtime, still_here(runtime, "one", 2))


# --- subscriptions --------------------------------------------------------------------------------


def test_a_changed_subscription_begins_an_epoch() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    request = still_here(runtime, "one", 2, {"orders": [0, 1, 2]})
    request.subscribed_topic_names = ["orders", "payments"]
    answer = told_ok(runtime, request)
    assert answer.member_epoch == 3
    assert given(runtime, answer) == {"orders": [0, 1, 2], "payments": [0, 1]}


def test_a_topic_that_grows_begins_an_epoch() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    runtime.topics.create("orders", 5)
    runtime.carry_out(runtime.shard.topics_changed(runtime.now_ms))
    answer = told_ok(runtime, still_here(runtime, "one", 2))
    assert given(runtime, answer) == {"orders": [0, 1, 2, 3, 4]}
    assert not runtime.shard.topics_changed(runtime.now_ms).records


def test_a_topic_that_comes_later_is_read_when_it_comes() -> None:
    runtime = Runtime()
    assert given(runtime, told_ok(runtime, hello("one", "later"))) == {}
    runtime.topics.create("later", 1)
    runtime.carry_out(runtime.shard.topics_changed(runtime.now_ms))
    answer = told_ok(runtime, still_here(runtime, "one", 2))
    assert given(runtime, answer) == {"later": [0]}


def test_a_pattern_reads_what_it_matches_now_and_later() -> None:
    runtime = Runtime()
    answer = told_ok(runtime, hello("one", pattern="(ord|pay).*s"))
    assert given(runtime, answer) == {"orders": [0, 1, 2], "payments": [0, 1]}
    runtime.topics.create("orderings", 1)
    runtime.carry_out(runtime.shard.topics_changed(runtime.now_ms))
    answer = told_ok(runtime, still_here(runtime, "one", 1))
    assert (given(runtime, answer) or {})["orderings"] == [0]
    runtime.restart()
    assert described(runtime).members[0].subscribed_topic_regex == "(ord|pay).*s"


def test_a_pattern_that_cannot_be_read_is_refused() -> None:
    runtime = Runtime()
    request = hello("one", pattern="orders(")
    assert code_of(runtime, request) is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_nobody_uses_is_forgotten() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one", pattern="orders"))
    request = still_here(runtime, "one", 1, {"orders": [0, 1, 2]})
    request.subscribed_topic_names, request.subscribed_topic_regex = ["payments"], ""
    told_ok(runtime, request)
    group = runtime.shard._groups.consumer(GROUP)
    assert not group.patterns
    assert group.subscribed_topics() == {"payments"}


# --- removed by an administrator ------------------------------------------------------------------


def test_an_administrator_removes_members_by_the_request_of_the_classic_protocol() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    told_ok(runtime, hello("two", instance="a"))
    request = leave("one", "one", "stranger", instances=("a", "b"))
    answer = runtime.ask("leave_group", request, LeaveGroupResponse)
    assert answer.error_code == ErrorCode.NONE
    assert [(each.member_id, each.error_code) for each in answer.members] == [
        ("one", ErrorCode.NONE),
        ("one", ErrorCode.NONE),
        ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", ErrorCode.NONE),
        ("", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert described(runtime).group_state == "Empty"
    assert code_of(runtime, still_here(runtime, "one", 2)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_what_a_member_gives_up_is_described_as_its_own_until_it_has() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    told_ok(runtime, hello("two"))
    told_ok(runtime, still_here(runtime, "one", 2, {"orders": [0, 1, 2]}))
    (one,) = [each for each in described(runtime).members if each.member_id == "one"]
    assert [each.partitions for each in one.assignment.topic_partitions] == [[0, 1, 2]]
    assert one.subscribed_topic_regex == ""


# --- static members -------------------------------------------------------------------------------


def test_a_static_member_that_leaves_for_a_while_finds_its_partitions_again() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one", instance="a"))
    answer = told_ok(runtime, goodbye("one", -2, "a"))
    assert answer.member_epoch == -2
    again = told_ok(runtime, hello("two", instance="a"))
    assert given(runtime, again) == {"orders": [0, 1, 2]}
    assert again.member_epoch == 2, "no new epoch was needed"
    assert [each.member_id for each in described(runtime).members] == ["two"]


def test_an_instance_in_use_is_not_given_to_another_member() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one", instance="a"))
    assert code_of(runtime, hello("two", instance="a")) is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_replaced_static_member_is_fenced() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one", instance="a"))
    told_ok(runtime, goodbye("one", -2, "a"))
    told_ok(runtime, hello("two", instance="a"))
    request = still_here(runtime, "one", 2)
    request.instance_id = "a"
    assert code_of(runtime, request) is ErrorCode.FENCED_INSTANCE_ID
    assert code_of(runtime, goodbye("one", -1, "a")) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one", instance="a"))
    told_ok(runtime, goodbye("one", -2, "a"))
    runtime.advance(SESSION_MS)
    assert described(runtime).group_state == "Empty"


# --- offsets --------------------------------------------------------------------------------------


def test_a_member_commits_at_its_epoch() -> None:
    runtime = Runtime()
    pair(runtime)
    assert commit_code(runtime, commit(5, member_id="one", generation=3)) is ErrorCode.NONE
    stale = commit(6, member_id="one", generation=4)
    assert commit_code(runtime, stale) is ErrorCode.STALE_MEMBER_EPOCH
    stranger = commit(6, member_id="three", generation=3)
    assert commit_code(runtime, stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(runtime, commit(6)) is ErrorCode.UNKNOWN_MEMBER_ID
    old_api = commit(6, member_id="one", generation=3)
    assert commit_code(runtime, old_api, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert committed(runtime) == 5


def test_a_member_that_is_behind_commits_only_what_it_has_had_all_the_while() -> None:
    runtime = Runtime()
    pair(runtime)
    kept = commit(5, member_id="one", generation=2, partition=0)
    assert commit_code(runtime, kept) is ErrorCode.NONE
    lost = commit(5, member_id="one", generation=2, partition=2)
    assert commit_code(runtime, lost) is ErrorCode.STALE_MEMBER_EPOCH
    before_it_had_it = commit(5, member_id="two", generation=2, partition=2)
    assert commit_code(runtime, before_it_had_it) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_member_reads_its_offsets_at_its_epoch() -> None:
    runtime = Runtime()
    pair(runtime)
    request = fetch()
    for member_id, epoch, code in [
        ("one", 3, ErrorCode.NONE),
        ("one", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("three", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, -1, ErrorCode.NONE),
    ]:
        request.member_id, request.member_epoch = member_id, epoch
        answer = runtime.shard.fetch_offsets(request, version=9, require_stable=False)
        assert answer.error_code == code


def test_offsets_of_an_empty_consumer_group_do_not_expire_at_once() -> None:
    runtime = Runtime(replace(GroupSettings(), offsets_retention_minutes=1))
    told_ok(runtime, hello("one"))
    commit_code(runtime, commit(5, member_id="one", generation=2))
    for _ in range(5):
        runtime.advance(40_000)
        told_ok(runtime, still_here(runtime, "one", 2))
    runtime.carry_out(runtime.shard.expire_offsets(runtime.now_ms))
    told_ok(runtime, goodbye("one"))
    runtime.carry_out(runtime.shard.expire_offsets(runtime.now_ms))
    assert committed(runtime) == 5
    runtime.advance(60_000)
    runtime.carry_out(runtime.shard.expire_offsets(runtime.now_ms))
    assert committed(runtime) == -1
    assert described(runtime).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_everything_survives_a_restart() -> None:
    runtime = Runtime()
    pair(runtime)
    runtime.ask("offset_commit", commit(5, member_id="one", generation=3), OffsetCommitResponse)
    before = described(runtime)
    runtime.restart()
    assert described(runtime) == before
    assert committed(runtime) == 5
    told_ok(runtime, still_here(runtime, "one", 3))


def test_a_step_that_cannot_be_written_is_not_taken() -> None:
    runtime = Runtime()
    pair(runtime)
    runtime.is_disk_full = True
    assert code_of(runtime, hello("three")) is ErrorCode.NOT_COORDINATOR
    assert code_of(runtime, goodbye("two")) is ErrorCode.NOT_COORDINATOR
    runtime.advance(SESSION_MS)
    assert described(runtime).group_state == "Stable"
    assert len(described(runtime).members) == 2
    runtime.is_disk_full = False
    runtime.advance(SESSION_MS)
    assert described(runtime).group_state == "Empty"


def test_a_description_tells_what_members_have_and_should_have() -> None:
    runtime = Runtime()
    told_ok(runtime, hello("one"))
    told_ok(runtime, hello("two"))
    group = described(runtime)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    one, two = group.members
    assert [each.partitions for each in one.assignment.topic_partitions] == [[0, 1, 2]]
    assert [each.partitions for each in one.target_assignment.topic_partitions] == [[0, 1]]
    assert [each.partitions for each in two.target_assignment.topic_partitions] == [[2]]
    assert {one.member_type, two.member_type} == {1}


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_either_assignor_shares_all_partitions(name: str) -> None:
    runtime = Runtime()
    for member_id in ("one", "two"):
        request = hello(member_id, "orders", "payments")
        request.server_assignor = name
        told_ok(runtime, request)
    targets = [
        (topic.topic_name, index)
        for member in described(runtime).members
        for topic in member.target_assignment.topic_partitions
        for index in topic.partitions
    ]
    assert sorted(targets) == [
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
        ("payments", 0),
        ("payments", 1),
    ]
