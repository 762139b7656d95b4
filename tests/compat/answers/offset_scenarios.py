"""What is asked of both brokers about offsets and about groups of the consumer protocol."""

from compat.answers.classic_scenarios import stable
from compat.answers.dialogue import Dialogue
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
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
    OffsetFetchResponse,
)

NO_SUCH_ID = bytes(15) + b"\7"


def commit(
    dialogue: Dialogue, offset: int = 5, *, partition: int = 0, metadata: str = "note"
) -> OffsetCommitRequest:
    wanted = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    topic = OffsetCommitRequestTopic(dialogue.topic, dialogue.topic_id, [wanted])
    return OffsetCommitRequest(group_id=dialogue.group, topics=[topic])


def offset_commit(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: OffsetCommitRequest) -> None:
        dialogue.ask(label, request, version, OffsetCommitResponse)

    request = commit(dialogue)
    request.group_id = ""
    ask("no group", request)
    request = commit(dialogue)
    request.generation_id_or_member_epoch, request.member_id = 1, "stranger"
    ask("a generation of an unknown group", request)
    ask("outside of any group", commit(dialogue))
    ask("an unknown partition", commit(dialogue, partition=9))
    ask("too much metadata", commit(dialogue, metadata="x" * 5000))
    request = commit(dialogue)
    request.topics[0].name, request.topics[0].topic_id = "no-such-topic", NO_SUCH_ID
    ask("an unknown topic", request)
    member = stable(dialogue)
    ask("outside of a group with members", commit(dialogue))
    for label, member_id, generation in (
        ("a member", member.member_id, member.generation_id),
        ("an unknown member", "stranger", member.generation_id),
        ("an earlier generation", member.member_id, member.generation_id - 1),
        ("no generation", member.member_id, -1),
    ):
        request = commit(dialogue)
        request.member_id, request.generation_id_or_member_epoch = member_id, generation
        ask(label, request)


def fetch(
    dialogue: Dialogue, version: int, partitions: list[int] | None, topic: str = ""
) -> OffsetFetchRequest:
    topic_id = NO_SUCH_ID if topic else dialogue.topic_id
    name = topic or dialogue.topic
    if version < 8:
        wanted = None
        if partitions is not None:
            wanted = [OffsetFetchRequestTopic(name, partitions)]
        return OffsetFetchRequest(group_id=dialogue.group, topics=wanted)
    topics = None
    if partitions is not None:
        topics = [OffsetFetchRequestTopics(name, topic_id, partitions)]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(dialogue.group, topics=topics)])


def offset_fetch(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: OffsetFetchRequest) -> None:
        dialogue.ask(label, request, version, OffsetFetchResponse)

    ask("an unknown group", fetch(dialogue, version, [0, 9]))
    if version >= 2:
        ask("all of an unknown group", fetch(dialogue, version, None))
    dialogue.quietly(commit(dialogue), 6, OffsetCommitResponse)
    ask("an offset, none, an unknown partition", fetch(dialogue, version, [0, 1, 9]))
    ask("an unknown topic", fetch(dialogue, version, [0], "no-such-topic"))
    if version >= 2:
        ask("all", fetch(dialogue, version, None))
    if version >= 7:
        request = fetch(dialogue, version, None)
        request.require_stable = True
        ask("all that is stable", request)
    if version >= 9:
        request = fetch(dialogue, version, None)
        request.groups[0].member_id, request.groups[0].member_epoch = "stranger", 3
        ask("as a member of no consumer group", request)


def offset_delete(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, group_id: str, topic: str, partition: int) -> None:
        wanted = OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(partition)])
        request = OffsetDeleteRequest(group_id=group_id, topics=[wanted])
        dialogue.ask(label, request, version, OffsetDeleteResponse)

    ask("no group", "", dialogue.topic, 0)
    ask("an unknown group", dialogue.other_group, dialogue.topic, 0)
    dialogue.quietly(commit(dialogue), 6, OffsetCommitResponse)
    ask("an unknown topic", dialogue.group, "no-such-topic", 0)
    ask("an unknown partition", dialogue.group, dialogue.topic, 9)
    ask("an offset", dialogue.group, dialogue.topic, 0)
    ask("an offset that is not there", dialogue.group, dialogue.topic, 1)
    stable(dialogue, protocol_type="connect")
    ask("a group of another kind with members", dialogue.group, dialogue.topic, 0)


def beat(
    dialogue: Dialogue, member_id: str = "member", epoch: int = 0
) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(
        group_id=dialogue.group, member_id=member_id, member_epoch=epoch
    )
    if epoch == 0:
        request.rebalance_timeout_ms = 60_000
        request.subscribed_topic_names = [dialogue.topic]
        request.topic_partitions = []
    return request


def consumer_group_heartbeat(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: ConsumerGroupHeartbeatRequest, **fields: object) -> None:
        for name, value in fields.items():
            setattr(request, name, value)
        dialogue.ask(label, request, version, ConsumerGroupHeartbeatResponse)

    ask("no group", beat(dialogue), group_id="")
    ask("an empty instance", beat(dialogue), instance_id="")
    ask("an empty rack", beat(dialogue), rack_id="")
    ask("no time to rebalance", beat(dialogue), rebalance_timeout_ms=-1)
    ask("no subscription", beat(dialogue), subscribed_topic_names=None)
    ask("no partitions", beat(dialogue), topic_partitions=None)
    ask("an unknown assignor", beat(dialogue), server_assignor="mine")
    ask("an epoch that cannot be", beat(dialogue, epoch=-3))
    ask("a static leave without an instance", beat(dialogue, epoch=-2))
    ask("a member of an unknown group", beat(dialogue, epoch=1))
    ask("a leave from an unknown group", beat(dialogue, epoch=-1))
    if version >= 1:
        ask("no member id", beat(dialogue, ""))
        bad = beat(dialogue)
        ask("a bad pattern", bad, subscribed_topic_names=None, subscribed_topic_regex="a(")
    ask("a first join", beat(dialogue))
    ask("the join again", beat(dialogue))
    ask("a sign of life", beat(dialogue, epoch=2))
    ask("an earlier epoch", beat(dialogue, epoch=1))
    ask("a later epoch", beat(dialogue, epoch=9))
    ask("an unknown member", beat(dialogue, "stranger", 2))
    ask("an unknown instance", beat(dialogue, epoch=2), instance_id="other")
    ask("a leave", beat(dialogue, epoch=-1))
    ask("a leave again", beat(dialogue, epoch=-1))


def static_consumer_group_heartbeat(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: ConsumerGroupHeartbeatRequest) -> None:
        request.instance_id = "instance"
        dialogue.ask(label, request, version, ConsumerGroupHeartbeatResponse)

    ask("a first join", beat(dialogue))
    ask("another that joins", beat(dialogue, "second"))
    ask("a leave for a while", beat(dialogue, epoch=-2))
    ask("the join after a restart", beat(dialogue, "second"))
    ask("the one before", beat(dialogue, epoch=2))
    ask("a leave", beat(dialogue, "second", -1))


def consumer_group_describe(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, group_id: str, *, with_operations: bool = True) -> None:
        request = ConsumerGroupDescribeRequest(
            group_ids=[group_id], include_authorized_operations=with_operations
        )
        dialogue.ask(label, request, version, ConsumerGroupDescribeResponse)

    ask("an unknown group", dialogue.other_group)
    dialogue.quietly(beat(dialogue), 1, ConsumerGroupHeartbeatResponse)
    ask("a stable group", dialogue.group)
    ask("without operations", dialogue.group, with_operations=False)
    dialogue.quietly(beat(dialogue, epoch=-1), 1, ConsumerGroupHeartbeatResponse)
    ask("an empty group", dialogue.group)


def leave_a_consumer_group(dialogue: Dialogue, version: int) -> None:
    if version < 3:
        return
    dialogue.quietly(beat(dialogue), 1, ConsumerGroupHeartbeatResponse)
    static = beat(dialogue, "static")
    static.instance_id = "instance"
    dialogue.quietly(static, 1, ConsumerGroupHeartbeatResponse)
    leavers = [
        MemberIdentity(member_id="member"),
        MemberIdentity(group_instance_id="instance"),
        MemberIdentity(member_id="stranger"),
        MemberIdentity(member_id="stranger", group_instance_id="instance"),
    ]
    request = LeaveGroupRequest(group_id=dialogue.group, members=leavers)
    dialogue.ask("members and strangers", request, version, LeaveGroupResponse)
    dialogue.ask("all of them again", request, version, LeaveGroupResponse)


def commit_in_a_consumer_group(dialogue: Dialogue, version: int) -> None:
    dialogue.quietly(beat(dialogue), 1, ConsumerGroupHeartbeatResponse)
    for label, member_id, epoch in (
        ("a member", "member", 2),
        ("an earlier epoch", "member", 1),
        ("a later epoch", "member", 3),
        ("an unknown member", "stranger", 2),
        ("nobody", "", -1),
    ):
        request = commit(dialogue)
        request.member_id, request.generation_id_or_member_epoch = member_id, epoch
        dialogue.ask(label, request, version, OffsetCommitResponse)


SCENARIOS = {
    offset_commit: OffsetCommitRequest,
    offset_fetch: OffsetFetchRequest,
    offset_delete: OffsetDeleteRequest,
    consumer_group_heartbeat: ConsumerGroupHeartbeatRequest,
    static_consumer_group_heartbeat: ConsumerGroupHeartbeatRequest,
    consumer_group_describe: ConsumerGroupDescribeRequest,
    leave_a_consumer_group: LeaveGroupRequest,
    commit_in_a_consumer_group: OffsetCommitRequest,
}
