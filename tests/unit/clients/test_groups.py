"""Groups as brokers of every age and mood describe them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ottla.clients.client import Client, ClientOptions
from ottla.clients.failures import BrokerTooOld, GroupHasMembers, GroupNotFound, TopicNotFound
from ottla.clients.group_offsets import (
    CommittedOffset,
    commit_offsets,
    committed_offsets,
    delete_offsets,
    group_lag,
)
from ottla.clients.groups import delete_groups, describe_group, list_groups
from ottla.errors import ErrorCode, RequestFailed
from ottla.model.ids import Offset, TopicPartition
from ottla.protocol.api import ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.message import Message, VersionRange
from ottla.protocol.messages import consumer_group_describe as consumer
from ottla.protocol.messages import describe_groups as classic
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from ottla.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_delete import OffsetDeleteResponse
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

T = TypeVar("T")
PLACE = TopicPartition("t", 0)
AT_FIVE = {PLACE: CommittedOffset(Offset(5))}


def here(_request: Message, _version: int) -> FindCoordinatorResponse:
    """The scripted broker coordinates everything, in both shapes of the answer."""
    return FindCoordinatorResponse(node_id=1, coordinators=[Coordinator(node_id=1)])


@pytest.fixture
def ask(a_broker, quick: ClientOptions):
    """`ask(work, {ApiKey.X: response})` runs `work(client)` against a broker that answers so."""

    def run(
        work: Callable[[Client], Awaitable[T]],
        answers: dict[ApiKey, Message],
        *,
        offered: dict[ApiKey, VersionRange] | None = None,
    ) -> T:
        async def main() -> T:
            async with a_broker() as broker:
                broker.answers[ApiKey.FIND_COORDINATOR] = here
                for key, answer in answers.items():
                    broker.answers[key] = lambda request, version, answer=answer: answer
                del broker.offered[ApiKey.CONSUMER_GROUP_DESCRIBE]
                broker.offered.update(offered or {})
                async with Client([broker.address], quick) as client:
                    return await work(client)

        return asyncio.run(main())

    return run


def a_classic_group(**fields: object) -> classic.DescribeGroupsResponse:
    row = classic.DescribedGroup(group_id="g", protocol_type="consumer", **fields)
    return classic.DescribeGroupsResponse(groups=[row])


def a_member(version: int) -> classic.DescribedGroupMember:
    """One that is assigned t-0 and t-1, as its leader of some version wrote it."""
    topic = ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[1, 0])
    body = encode(ConsumerProtocolAssignment(assigned_partitions=[topic]), min(version, 3))
    wants = encode(ConsumerProtocolSubscription(topics=["t"]), min(version, 3))
    prefix = version.to_bytes(2, "big")
    return classic.DescribedGroupMember(
        member_id="m",
        client_host="/10.0.0.1",
        member_metadata=prefix + wants,
        member_assignment=prefix + body + (b"more" if version > 3 else b""),
    )


def test_groups_of_a_broker_are_listed_by_name(ask) -> None:
    rows = [ListedGroup(group_id="b"), ListedGroup(group_id="a", group_state="Stable")]
    found = ask(list_groups, {ApiKey.LIST_GROUPS: ListGroupsResponse(groups=rows)})
    assert [(each.id, each.state) for each in found] == [("a", "Stable"), ("b", "")]


def test_a_broker_that_cannot_filter_is_not_asked_to(ask) -> None:
    with pytest.raises(BrokerTooOld):
        ask(
            lambda client: list_groups(client, states=["Stable"]),
            {ApiKey.LIST_GROUPS: ListGroupsResponse()},
            offered={ApiKey.LIST_GROUPS: VersionRange(0, 3)},
        )


@pytest.mark.parametrize("version", [0, 3, 7])
def test_a_classic_members_assignment_is_read_in_every_version(ask, version: int) -> None:
    answer = a_classic_group(group_state="Stable", members=[a_member(version)])
    found = ask(lambda client: describe_group(client, "g"), {ApiKey.DESCRIBE_GROUPS: answer})
    (member,) = found.members
    assert member.assigned == (PLACE, TopicPartition("t", 1))
    assert (member.subscription, member.host) == (("t",), "10.0.0.1")
    assert found.owners()[PLACE] is member


@pytest.mark.parametrize("assignment", [b"", b"\0", b"\0\0\xff\xff\xff", b"\xff\xffxx"])
def test_an_assignment_that_nobody_can_read_is_none(ask, assignment: bytes) -> None:
    odd = classic.DescribedGroupMember(member_metadata=assignment, member_assignment=assignment)
    answer = a_classic_group(group_state="Stable", members=[odd])
    found = ask(lambda client: describe_group(client, "g"), {ApiKey.DESCRIBE_GROUPS: answer})
    assert (found.members[0].assigned, found.members[0].subscription) == ((), ())


@pytest.mark.parametrize(
    "answer",
    [
        a_classic_group(group_state="Dead"),
        a_classic_group(error_code=int(ErrorCode.GROUP_ID_NOT_FOUND)),
    ],
    ids=["dead", "not found"],
)
def test_an_unknown_group_is_not_found_however_the_broker_says_it(ask, answer: Message) -> None:
    with pytest.raises(GroupNotFound):
        ask(lambda client: describe_group(client, "g"), {ApiKey.DESCRIBE_GROUPS: answer})


def test_the_newer_protocol_is_asked_first_and_the_older_if_it_knows_nothing(ask) -> None:
    partitions = consumer.TopicPartitions(topic_name="t", partitions=[0])
    member = consumer.Member(
        member_id="m",
        subscribed_topic_regex="t.*",
        target_assignment=consumer.Assignment(topic_partitions=[partitions]),
    )
    row = consumer.DescribedGroup(group_id="g", group_state="Reconciling", members=[member])
    both = {ApiKey.CONSUMER_GROUP_DESCRIBE: VersionRange(0, 1)}
    answers: dict[ApiKey, Message] = {
        ApiKey.CONSUMER_GROUP_DESCRIBE: consumer.ConsumerGroupDescribeResponse(groups=[row]),
        ApiKey.DESCRIBE_GROUPS: a_classic_group(group_state="Stable"),
    }
    found = ask(lambda client: describe_group(client, "g"), answers, offered=both)
    assert (found.type, found.state) == ("consumer", "Reconciling")
    assert (found.members[0].assigned, found.members[0].target) == ((), (PLACE,))
    assert found.members[0].subscription == ("/t.*/",)
    row.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
    found = ask(lambda client: describe_group(client, "g"), answers, offered=both)
    assert (found.type, found.state) == ("classic", "Stable")


def test_of_several_groups_each_has_its_own_outcome(a_broker, quick: ClientOptions) -> None:
    codes = {"a": 0, "b": ErrorCode.NON_EMPTY_GROUP, "c": ErrorCode.GROUP_ID_NOT_FOUND}

    def answer(request: DeleteGroupsRequest, version: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[DeletableGroupResult(each, int(codes[each])) for each in request.groups_names]
        )

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.FIND_COORDINATOR] = here
            broker.answers[ApiKey.DELETE_GROUPS] = answer
            outcomes = await delete_groups(client, codes)
        assert [each.name for each in outcomes] == ["a", "b", "c"]
        errors = [type(each.error) for each in outcomes]
        assert errors == [type(None), GroupHasMembers, GroupNotFound]

    asyncio.run(main())


@pytest.mark.parametrize("last", [5, 7, 9, 10])
def test_offsets_are_read_from_either_shape_of_the_answer(ask, last: int) -> None:
    old = [
        OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="m"),
        OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
    ]
    new = [
        OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m"),
        OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
    ]
    topics = [OffsetFetchResponseTopics(name="t", partitions=new)]
    answer = OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name="t", partitions=old)],
        groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)],
    )
    offered = {ApiKey.OFFSET_FETCH: VersionRange(1, last)}
    answers = {ApiKey.OFFSET_FETCH: answer}
    found = ask(lambda client: committed_offsets(client, "g"), answers, offered=offered)
    assert found == {PLACE: CommittedOffset(Offset(5), metadata="m")}


def test_lag_is_told_also_where_nothing_is_committed_or_there(ask) -> None:
    rows = [OffsetFetchResponsePartitions(partition_index=0, committed_offset=5)]
    topics = [OffsetFetchResponseTopics(name=name, partitions=rows) for name in ("gone", "t")]
    listed = ListOffsetsPartitionResponse(partition_index=0, offset=8)
    answers: dict[ApiKey, Message] = {
        ApiKey.OFFSET_FETCH: OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)]
        ),
        ApiKey.LIST_OFFSETS: ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name="t", partitions=[listed])]
        ),
    }
    also = [TopicPartition("t", 7)]
    found = ask(lambda client: group_lag(client, "g", also=also), answers)
    assert [(str(row.partition), row.committed, row.lag) for row in found] == [
        ("gone-0", 5, None),
        ("t-0", 5, 3),
        ("t-7", None, None),
    ]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, GroupHasMembers),
        (ErrorCode.REBALANCE_IN_PROGRESS, GroupHasMembers),
        (ErrorCode.STALE_MEMBER_EPOCH, GroupHasMembers),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TopicNotFound),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, RequestFailed),
    ],
)
def test_a_refused_commit_says_why(ask, code: ErrorCode, error: type[Exception]) -> None:
    row = OffsetCommitResponsePartition(partition_index=0, error_code=int(code))
    answer = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[row])])
    with pytest.raises(error):
        ask(lambda client: commit_offsets(client, "g", AT_FIVE), {ApiKey.OFFSET_COMMIT: answer})


def test_offsets_of_an_unknown_group_cannot_be_forgotten(ask) -> None:
    answer = OffsetDeleteResponse(error_code=int(ErrorCode.GROUP_ID_NOT_FOUND))
    with pytest.raises(GroupNotFound):
        ask(lambda client: delete_offsets(client, "g", [PLACE]), {ApiKey.OFFSET_DELETE: answer})


def test_a_coordinator_that_moves_is_looked_for_again(a_broker, quick: ClientOptions) -> None:
    refused = OffsetFetchResponseGroup(group_id="g", error_code=int(ErrorCode.NOT_COORDINATOR))
    answers = iter([OffsetFetchResponse(groups=[refused]), OffsetFetchResponse()])

    async def main() -> None:
        async with a_broker() as broker, Client([broker.address], quick) as client:
            broker.answers[ApiKey.FIND_COORDINATOR] = here
            broker.answers[ApiKey.OFFSET_FETCH] = lambda request, version: next(answers)
            assert await committed_offsets(client, "g") == {}
            assert len(broker.versions_seen(ApiKey.FIND_COORDINATOR)) == 2
            assert broker.versions_seen(ApiKey.OFFSET_FETCH) == [9, 9]

    asyncio.run(main())
