"""What is asked of both brokers about classic groups: good requests and bad ones, by version."""

from compat.answers.dialogue import Dialogue
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ottla.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

MEMBER_ID_REQUIRED = 79
RANGE, METADATA = "range", b"\0\1\0\0\0\0\0\0\0\0\0\0\0\0"
ASSIGNMENT = b"\0\1\0\0\0\0\0\0\0\0"


def join(dialogue: Dialogue, member_id: str = "", **fields: object) -> JoinGroupRequest:
    request = JoinGroupRequest(
        group_id=dialogue.group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=METADATA)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def joined(dialogue: Dialogue, version: int = 5, **fields: object) -> JoinGroupResponse:
    """A member that leads a generation that has no assignment yet."""
    answer = dialogue.quietly(join(dialogue, **fields), version, JoinGroupResponse)
    if answer.error_code == MEMBER_ID_REQUIRED:
        again = join(dialogue, answer.member_id, **fields)
        answer = dialogue.quietly(again, version, JoinGroupResponse)
    dialogue.name(answer.member_id, "<member>")
    return answer


def stable(dialogue: Dialogue, **fields: object) -> JoinGroupResponse:
    """The only member of a stable group."""
    member = joined(dialogue, **fields)
    request = SyncGroupRequest(
        group_id=dialogue.group,
        generation_id=member.generation_id,
        member_id=member.member_id,
        assignments=[SyncGroupRequestAssignment(member.member_id, ASSIGNMENT)],
    )
    answer = dialogue.quietly(request, 3, SyncGroupResponse)
    assert answer.error_code == 0
    return member


def join_group(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: JoinGroupRequest) -> JoinGroupResponse:
        return dialogue.ask(label, request, version, JoinGroupResponse)

    ask("no group", join(dialogue, group_id=""))
    ask("a session that is too short", join(dialogue, session_timeout_ms=1))
    ask("a session that is too long", join(dialogue, session_timeout_ms=2_000_000_000))
    ask("an unknown member of an unknown group", join(dialogue, "stranger"))
    ask("no protocols", join(dialogue, protocols=[]))
    ask("no protocol type", join(dialogue, protocol_type=""))
    first = dialogue.quietly(join(dialogue), version, JoinGroupResponse)
    dialogue.name(first.member_id, "<member>")
    dialogue.note("a first join", first)
    if first.error_code == MEMBER_ID_REQUIRED:
        first = ask("the join with the id", join(dialogue, first.member_id))
    ask("the same join again", join(dialogue, first.member_id))
    ask("an unknown member", join(dialogue, "stranger"))
    ask("another protocol type", join(dialogue, protocol_type="connect"))
    other = [JoinGroupRequestProtocol(name="other", metadata=METADATA)]
    ask("another protocol", join(dialogue, protocols=other))
    if version >= 5:
        ask("an unknown static member", join(dialogue, "stranger", group_instance_id="instance"))


def join_group_as_a_static_member(dialogue: Dialogue, version: int) -> None:
    if version < 5:
        return
    request = join(dialogue, group_instance_id="instance")
    first = dialogue.quietly(request, version, JoinGroupResponse)
    dialogue.name(first.member_id, "<member>")
    dialogue.note("a first join", first)
    again = dialogue.quietly(request, version, JoinGroupResponse)
    dialogue.name(again.member_id, "<member after a restart>")
    dialogue.note("the join after a restart", again)
    fenced = join(dialogue, first.member_id, group_instance_id="instance")
    dialogue.ask("the one before", fenced, version, JoinGroupResponse)


def sync_group(dialogue: Dialogue, version: int) -> None:
    member = joined(dialogue)

    def ask(label: str, **fields: object) -> None:
        request = SyncGroupRequest(
            group_id=dialogue.group,
            generation_id=member.generation_id,
            member_id=member.member_id,
            protocol_type="consumer",
            protocol_name=RANGE,
            assignments=[SyncGroupRequestAssignment(member.member_id, ASSIGNMENT)],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        dialogue.ask(label, request, version, SyncGroupResponse)

    ask("no group", group_id="")
    ask("an unknown group", group_id=dialogue.other_group)
    ask("an unknown member", member_id="stranger")
    ask("an earlier generation", generation_id=member.generation_id - 1)
    ask("another protocol type", protocol_type="connect")
    ask("another protocol", protocol_name="other")
    ask("no protocol", protocol_name=None, protocol_type=None)
    if version >= 3:
        ask("an unknown instance", group_instance_id="instance")
    ask("the leader")
    ask("the leader again")


def heartbeat(dialogue: Dialogue, version: int) -> None:
    member = joined(dialogue)

    def ask(label: str, **fields: object) -> None:
        request = HeartbeatRequest(
            group_id=dialogue.group,
            generation_id=member.generation_id,
            member_id=member.member_id,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        dialogue.ask(label, request, version, HeartbeatResponse)

    ask("before the assignment")
    ask("no group", group_id="")
    ask("an unknown group", group_id=dialogue.other_group)
    ask("an unknown member", member_id="stranger")
    ask("an earlier generation", generation_id=member.generation_id - 1)
    ask("a later generation", generation_id=member.generation_id + 1)
    if version >= 3:
        ask("an unknown instance", group_instance_id="instance")


def leave_group(dialogue: Dialogue, version: int) -> None:
    member = stable(dialogue)

    def ask(label: str, group_id: str, *member_ids: str) -> None:
        request = LeaveGroupRequest(
            group_id=group_id,
            member_id=member_ids[0],
            members=[MemberIdentity(member_id=each) for each in member_ids],
        )
        dialogue.ask(label, request, version, LeaveGroupResponse)

    ask("no group", "", member.member_id)
    ask("an unknown group", dialogue.other_group, member.member_id)
    ask("an unknown member", dialogue.group, "stranger")
    ask("the member", dialogue.group, member.member_id, "stranger")
    ask("the member again", dialogue.group, member.member_id)


def leave_group_as_a_static_member(dialogue: Dialogue, version: int) -> None:
    if version < 3:
        return
    stable(dialogue, group_instance_id="instance")
    for label, identity in (
        ("an unknown instance", MemberIdentity(group_instance_id="other")),
        ("a fenced member", MemberIdentity(member_id="old", group_instance_id="instance")),
        ("the instance", MemberIdentity(group_instance_id="instance")),
    ):
        request = LeaveGroupRequest(group_id=dialogue.group, members=[identity])
        dialogue.ask(label, request, version, LeaveGroupResponse)


def describe_groups(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, group_id: str) -> None:
        request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=True)
        dialogue.ask(label, request, version, DescribeGroupsResponse)

    ask("an unknown group", dialogue.other_group)
    member = joined(dialogue)
    ask("a group that waits for its assignment", dialogue.group)
    request = SyncGroupRequest(
        group_id=dialogue.group,
        generation_id=member.generation_id,
        member_id=member.member_id,
        assignments=[SyncGroupRequestAssignment(member.member_id, ASSIGNMENT)],
    )
    dialogue.quietly(request, 3, SyncGroupResponse)
    ask("a stable group", dialogue.group)
    leaving = LeaveGroupRequest(group_id=dialogue.group, member_id=member.member_id)
    dialogue.quietly(leaving, 2, LeaveGroupResponse)
    ask("an empty group", dialogue.group)


def list_groups(dialogue: Dialogue, version: int) -> None:
    stable(dialogue)
    wishes: list[tuple[str, list[str], list[str]]] = [("all", [], [])]
    if version >= 4:
        wishes += [(f"in state {each}", [each], []) for each in ("Stable", "stable", "Empty", "?")]
    if version >= 5:
        wishes += [(f"of type {each}", [], [each]) for each in ("classic", "Consumer", "?")]
    for label, states, types in wishes:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answer = dialogue.quietly(request, version, ListGroupsResponse)
        answer.groups = [each for each in answer.groups if each.group_id == dialogue.group]
        dialogue.note(label, answer)


def delete_groups(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, *names: str) -> None:
        request = DeleteGroupsRequest(groups_names=list(names))
        dialogue.ask(label, request, version, DeleteGroupsResponse)

    ask("an unknown group", dialogue.other_group)
    member = stable(dialogue)
    ask("a group with members", dialogue.group)
    leaving = LeaveGroupRequest(group_id=dialogue.group, member_id=member.member_id)
    dialogue.quietly(leaving, 2, LeaveGroupResponse)
    ask("an empty group and an unknown one", dialogue.group, dialogue.other_group)
    ask("the group again", dialogue.group)


SCENARIOS = {
    join_group: JoinGroupRequest,
    join_group_as_a_static_member: JoinGroupRequest,
    sync_group: SyncGroupRequest,
    heartbeat: HeartbeatRequest,
    leave_group: LeaveGroupRequest,
    leave_group_as_a_static_member: LeaveGroupRequest,
    describe_groups: DescribeGroupsRequest,
    list_groups: ListGroupsRequest,
    delete_groups: DeleteGroupsRequest,
}
