"""Committed offsets: who may commit when, what is kept, what goes."""

from dataclasses import replace

import pytest

from ottla.coordination.decision import Caller
from ottla.coordination.group.records import decode_record
from ottla.coordination.group.shard import GroupShard
from ottla.errors import ErrorCode
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.messages.offset_commit import OffsetCommitResponse
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.settings.coordination import GroupSettings
from unit.coordination.group.classic_client import (
    commit_code,
    committed,
    group_now,
    stable_group,
    start_join,
)
from unit.coordination.group.requests import GROUP, commit, fetch, join, leave
from unit.coordination.group.runtime import Runtime

DAY_MS = 24 * 60 * 60_000
RETENTION_MS = 7 * DAY_MS


def expire(runtime: Runtime) -> None:
    while (decision := runtime.shard.expire_offsets(runtime.now_ms)).records:
        runtime.carry_out(decision)


def transactional(offset: int, producer_id: int = 7) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="transfers",
        group_id=GROUP,
        producer_id=producer_id,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="orders",
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
                ],
            )
        ],
    )


def txn_code(runtime: Runtime, request: TxnOffsetCommitRequest, version: int = 5) -> ErrorCode:
    answer = runtime.ask("txn_offset_commit", request, TxnOffsetCommitResponse, version=version)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


# --- who may commit -------------------------------------------------------------------------------


def test_a_member_commits_in_its_generation() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    request = commit(5, member_id=member_id, generation=1)
    assert commit_code(runtime, request) is ErrorCode.NONE
    assert committed(runtime) == 5


def test_anybody_commits_for_a_group_that_does_not_exist() -> None:
    runtime = Runtime()
    assert commit_code(runtime, commit(5)) is ErrorCode.NONE
    assert group_now(runtime).group_state == "Empty"
    assert group_now(runtime).protocol_type == ""


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_member_of_a_group_that_is_gone_is_told_so(version: int, code: ErrorCode) -> None:
    request = commit(5, member_id="m", generation=3)
    assert commit_code(Runtime(), request, version=version) is code


def test_commits_that_do_not_fit_the_generation_are_refused() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    wrong = {
        ErrorCode.ILLEGAL_GENERATION: commit(5, member_id=member_id, generation=2),
        ErrorCode.UNKNOWN_MEMBER_ID: commit(5, member_id="stranger", generation=1),
    }
    for code, request in wrong.items():
        assert commit_code(runtime, request) is code
    assert commit_code(runtime, commit(5)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(runtime) == -1


def test_members_commit_while_others_join_and_not_while_the_assignment_is_awaited() -> None:
    runtime = Runtime()
    leader, follower = stable_group(runtime, 2)
    runtime.send("join_group", join(leader))
    old = commit(5, member_id=follower, generation=1)
    assert commit_code(runtime, old) is ErrorCode.NONE
    runtime.send("join_group", join(follower))
    assert group_now(runtime).group_state == "CompletingRebalance"
    new = commit(6, member_id=follower, generation=2)
    assert commit_code(runtime, new) is ErrorCode.REBALANCE_IN_PROGRESS
    assert committed(runtime) == 5


def test_an_administrator_commits_for_an_empty_group() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    runtime.send("leave_group", leave(member_id))
    assert commit_code(runtime, commit(5)) is ErrorCode.NONE


def test_a_commit_keeps_the_session_alive() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    for offset in range(5):
        runtime.advance(9_000)
        request = commit(offset, member_id=member_id, generation=1)
        assert commit_code(runtime, request) is ErrorCode.NONE


def test_topics_and_partitions_that_do_not_exist_are_refused() -> None:
    runtime = Runtime()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit_code(runtime, commit(5, topic="nothing")) is unknown
    assert commit_code(runtime, commit(5, partition=3)) is unknown
    assert commit_code(runtime, commit(5, partition=-1)) is unknown


def test_a_note_that_is_too_long_is_refused() -> None:
    runtime = Runtime(replace(GroupSettings(), offset_metadata_max_bytes=3))
    assert commit_code(runtime, commit(5, metadata="abc")) is ErrorCode.NONE
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit_code(runtime, commit(6, metadata="abcd")) is too_large
    assert committed(runtime) == 5


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_commit_is_answered(version: int) -> None:
    runtime = Runtime()
    assert commit_code(runtime, commit(5), version=version) is ErrorCode.NONE
    assert committed(runtime) == 5


def test_the_newest_version_names_topics_by_id() -> None:
    runtime = Runtime()
    request = commit(5, topic="")
    request.topics[0].topic_id = runtime.topics.ids["orders"]
    assert commit_code(runtime, request, version=10) is ErrorCode.NONE
    assert committed(runtime) == 5
    request.topics[0].topic_id = bytes(15) + b"?"
    assert commit_code(runtime, request, version=10) is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_commit_that_cannot_be_written_is_refused_and_not_seen() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    runtime.is_disk_full = True
    assert commit_code(runtime, commit(6)) is ErrorCode.NOT_COORDINATOR
    assert committed(runtime) == 5


def test_commits_survive_a_restart() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    commit_code(runtime, commit(7, topic="payments", partition=1))
    runtime.restart()
    assert (committed(runtime), committed(runtime, "payments", 1)) == (5, 7)


def test_the_record_is_the_one_kafka_reads() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5, metadata="note"))
    (key, value, _) = runtime.log[0]
    assert value is not None
    assert value[:2] == b"\x00\x04", "the version that has the topic's id"
    assert decode_record(key, value) == (
        OffsetCommitKey(group=GROUP, topic="orders", partition=0),
        OffsetCommitValue(
            offset=5,
            metadata="note",
            commit_timestamp=runtime.now_ms,
            topic_id=runtime.topics.ids["orders"],
        ),
    )


def test_where_not_all_brokers_know_topics_by_id_offsets_are_kept_without() -> None:
    runtime = Runtime()
    runtime.shard = GroupShard(runtime.settings, runtime.topics, str, offset_version_max=3)
    commit_code(runtime, commit(5))
    (_, value, _) = runtime.log[0]
    assert value is not None
    assert value[:2] == b"\x00\x03"
    assert committed(runtime) == 5


# --- reading --------------------------------------------------------------------------------------


def test_a_partition_without_a_commit_has_no_offset_and_no_error() -> None:
    runtime = Runtime()
    answer = runtime.shard.fetch_offsets(fetch(), version=9, require_stable=True)
    partition = answer.topics[0].partitions[0]
    assert (partition.committed_offset, partition.error_code) == (-1, ErrorCode.NONE)


def test_all_offsets_of_a_group_are_read_at_once() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    commit_code(runtime, commit(7, topic="payments", partition=1))
    request = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    for version in (8, 10):
        answer = runtime.shard.fetch_offsets(request, version=version, require_stable=False)
        found = {each.name: each.partitions[0].committed_offset for each in answer.topics}
        assert found == {"orders": 5, "payments": 7}


@pytest.mark.parametrize("version", range(11))
def test_every_version_of_fetch_is_answered(version: int) -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    request = OffsetFetchRequest()
    if version < 8:
        request.group_id = GROUP
        request.topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
    else:
        topic = OffsetFetchRequestTopics(
            name="orders", topic_id=runtime.topics.ids["orders"], partition_indexes=[0]
        )
        request.groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])]
    answer = runtime.shard.offset_fetch(request, Caller("client", "/host", version))
    topics = answer.topics if version < 8 else answer.groups[0].topics
    assert topics[0].partitions[0].committed_offset == 5


def test_an_offset_of_a_topic_that_was_made_anew_is_not_shown() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    runtime.topics.delete("orders")
    runtime.topics.create("orders", 3, life=2)
    assert committed(runtime) == -1


# --- transactions ---------------------------------------------------------------------------------


def test_an_offset_of_a_transaction_is_seen_when_it_is_committed() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    assert txn_code(runtime, transactional(9)) is ErrorCode.NONE
    assert committed(runtime) == 5
    runtime.end_transaction(7, is_commit=True)
    assert committed(runtime) == 9


def test_an_offset_of_an_aborted_transaction_is_never_seen() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    txn_code(runtime, transactional(9))
    runtime.end_transaction(7, is_commit=False)
    assert committed(runtime) == 5


def test_a_reader_that_wants_stable_offsets_waits_for_the_transaction() -> None:
    runtime = Runtime()
    txn_code(runtime, transactional(9))
    for is_open in (True, False):
        answer = runtime.shard.fetch_offsets(fetch(), version=9, require_stable=True)
        code = answer.topics[0].partitions[0].error_code
        assert code == (ErrorCode.UNSTABLE_OFFSET_COMMIT if is_open else ErrorCode.NONE)
        runtime.end_transaction(7, is_commit=True)


def test_of_a_commit_and_a_transaction_the_later_written_wins() -> None:
    runtime = Runtime()
    txn_code(runtime, transactional(9))
    commit_code(runtime, commit(12))
    runtime.end_transaction(7, is_commit=True)
    assert committed(runtime) == 12
    runtime.restart()
    assert committed(runtime) == 12


def test_an_open_transaction_survives_a_restart() -> None:
    runtime = Runtime()
    txn_code(runtime, transactional(9))
    runtime.restart()
    runtime.end_transaction(7, is_commit=True)
    assert committed(runtime) == 9


def test_transactional_commits_of_members_are_checked_and_those_of_old_clients_believed() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    request = transactional(9)
    assert txn_code(runtime, request, version=2) is ErrorCode.NONE
    request.member_id, request.generation_id_or_member_epoch = member_id, 1
    assert txn_code(runtime, request) is ErrorCode.NONE
    request.generation_id_or_member_epoch = 2
    assert txn_code(runtime, request) is ErrorCode.ILLEGAL_GENERATION
    request.member_id = "stranger"
    assert txn_code(runtime, request) is ErrorCode.UNKNOWN_MEMBER_ID


# --- removal --------------------------------------------------------------------------------------


def test_offsets_of_an_empty_group_expire_one_retention_after_it_became_empty() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    commit_code(runtime, commit(5, member_id=member_id, generation=1))
    for _ in range(20):
        runtime.advance(9_000)
        commit_code(runtime, commit(7, topic="payments", member_id=member_id, generation=1))
    runtime.send("leave_group", leave(member_id))
    runtime.advance(RETENTION_MS - 1)
    expire(runtime)
    assert committed(runtime) == 5
    runtime.advance(1)
    expire(runtime)
    assert committed(runtime) == -1
    assert runtime.shard.describe_group(GROUP, 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_group_that_is_read_never_expire() -> None:
    runtime = Runtime(replace(GroupSettings(), offsets_retention_minutes=1))
    (member_id,) = stable_group(runtime)
    commit_code(runtime, commit(5, member_id=member_id, generation=1))
    for _ in range(20):
        runtime.advance(9_000)
        commit_code(runtime, commit(1, topic="payments", member_id=member_id, generation=1))
    expire(runtime)
    assert committed(runtime) == 5


def test_offsets_of_topics_a_stable_group_no_longer_reads_expire() -> None:
    runtime = Runtime(replace(GroupSettings(), offsets_retention_minutes=1))
    (member_id,) = stable_group(runtime)
    commit_code(runtime, commit(5, topic="payments", member_id=member_id, generation=1))
    for _ in range(20):
        runtime.advance(9_000)
        commit_code(runtime, commit(5, member_id=member_id, generation=1))
    expire(runtime)
    assert committed(runtime, "payments") == -1
    assert committed(runtime) == 5


def test_nothing_expires_while_a_group_rebalances() -> None:
    runtime = Runtime(replace(GroupSettings(), offsets_retention_minutes=1))
    leader, _ = stable_group(runtime, 2)
    commit_code(runtime, commit(5, topic="payments", member_id=leader, generation=1))
    long = join(leader)
    long.rebalance_timeout_ms = 10 * 60_000
    runtime.send("join_group", long)
    for _ in range(2):
        start_join(runtime)
    runtime.now_ms += 2 * 60_000
    assert group_now(runtime).group_state == "PreparingRebalance"
    expire(runtime)
    assert committed(runtime, "payments") == 5


def test_offsets_of_a_simple_group_age_from_their_commit() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    runtime.advance(DAY_MS)
    commit_code(runtime, commit(7, partition=1))
    runtime.advance(RETENTION_MS - DAY_MS)
    expire(runtime)
    assert committed(runtime) == -1
    assert committed(runtime, partition=1) == 7


def test_a_retention_that_an_old_client_asked_for_is_kept() -> None:
    runtime = Runtime()
    request = commit(5)
    request.retention_time_ms = 1000
    commit_code(runtime, request, version=2)
    runtime.restart()
    runtime.advance(999)
    expire(runtime)
    assert committed(runtime) == 5
    runtime.advance(1)
    expire(runtime)
    assert committed(runtime) == -1


def test_offsets_of_an_open_transaction_do_not_expire() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    txn_code(runtime, transactional(9))
    runtime.advance(RETENTION_MS)
    expire(runtime)
    assert committed(runtime) == 5


def test_expiry_writes_a_bounded_number_of_records_at_a_time() -> None:
    runtime = Runtime()
    runtime.topics.create("wide", 2500)
    request = commit(1, topic="wide")
    first = request.topics[0].partitions[0]
    request.topics[0].partitions = [type(first)(partition_index=i) for i in range(2500)]
    runtime.ask("offset_commit", request, OffsetCommitResponse)
    runtime.advance(RETENTION_MS)
    sizes = []
    while (decision := runtime.shard.expire_offsets(runtime.now_ms)).records:
        sizes.append(len(decision.records))
        runtime.carry_out(decision)
    assert sizes == [1000, 1000, 501]


def test_offsets_go_with_their_topic() -> None:
    runtime = Runtime()
    commit_code(runtime, commit(5))
    commit_code(runtime, commit(7, topic="payments"))
    txn_code(runtime, transactional(9))
    runtime.topics.delete("orders")
    runtime.carry_out(runtime.shard.topics_deleted(["orders"], runtime.now_ms))
    runtime.end_transaction(7, is_commit=True)
    assert committed(runtime) == -1
    assert committed(runtime, "payments") == 7


def delete_offset(runtime: Runtime, topic: str) -> OffsetDeleteResponse:
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    return runtime.ask("offset_delete", request, OffsetDeleteResponse)


def test_offsets_are_deleted_of_topics_the_group_does_not_read() -> None:
    runtime = Runtime()
    assert delete_offset(runtime, "orders").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    (member_id,) = stable_group(runtime)
    for topic in ("orders", "payments"):
        commit_code(runtime, commit(5, topic=topic, member_id=member_id, generation=1))
    codes = {
        topic: delete_offset(runtime, topic).topics[0].partitions[0].error_code
        for topic in ("orders", "payments", "nothing")
    }
    assert codes == {
        "orders": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        "payments": ErrorCode.NONE,
        "nothing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (committed(runtime), committed(runtime, "payments")) == (5, -1)


def test_offsets_of_a_group_with_members_of_another_kind_are_not_deleted() -> None:
    runtime = Runtime()
    request = join()
    request.protocol_type = "connect"
    runtime.send("join_group", request, version=3)
    runtime.advance(3000)
    assert delete_offset(runtime, "orders").error_code == ErrorCode.NON_EMPTY_GROUP


def test_a_group_is_deleted_with_its_offsets_when_it_is_empty() -> None:
    runtime = Runtime()
    (member_id,) = stable_group(runtime)
    commit_code(runtime, commit(5, member_id=member_id, generation=1))

    def delete() -> list[int]:
        request = DeleteGroupsRequest(groups_names=[GROUP, "nobody"])
        answer = runtime.ask("delete_groups", request, DeleteGroupsResponse)
        return [each.error_code for each in answer.results]

    assert delete() == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
    runtime.send("leave_group", leave(member_id))
    assert delete() == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert committed(runtime) == -1
    runtime.restart()
    assert committed(runtime) == -1
    assert delete() == [ErrorCode.GROUP_ID_NOT_FOUND] * 2
