"""Model consumers: what a well-behaved client of either protocol does, one step at a time.

Each keeps what it believes to own. A client may lose an answer, be paused, crash or leave.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ottla.coordination.decision import Ticket
from ottla.coordination.group.embedded_protocol import read_assignment
from ottla.errors import ErrorCode
from ottla.model.ids import TopicId
from ottla.protocol.message import Message
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.offset_commit import OffsetCommitResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
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

Owned = set[tuple[str, int]]


@dataclass
class Ledger:
    """What the outside world has seen, to be held against the coordinator."""

    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    """The highest acknowledged offset of each partition."""
    next_offset: int = 1
    owners: dict[tuple[int, str, int], str] = field(default_factory=dict)
    """Who was given a partition, by generation of the classic group."""

    def given(self, generation: int, receiver: str, partitions: Owned) -> None:
        """A member, known by its instance where it has one, was given partitions."""
        for topic, index in partitions:
            owner = self.owners.setdefault((generation, topic, index), receiver)
            assert owner == receiver, (
                f"{topic}-{index} is with {owner} and {receiver} in generation {generation}"
            )


@dataclass
class Consumer:
    """What both kinds of clients have."""

    runtime: Runtime
    ledger: Ledger
    random: Random
    name: str
    instance: str | None = None
    topics: tuple[str, ...] = ("orders",)
    member_id: str = ""
    epoch: int = 0
    owned: Owned = field(default_factory=set)
    is_alive: bool = True
    due_ms: int = 0

    def commit_something(self) -> None:
        """Commit a partition it believes to own; offsets only grow."""
        if not self.owned or not self.member_id:
            return
        topic, partition = self.random.choice(sorted(self.owned))
        offset = self.ledger.next_offset
        self.ledger.next_offset += 1
        request = commit(
            offset,
            member_id=self.member_id,
            generation=self.epoch,
            topic=topic,
            partition=partition,
        )
        request.group_instance_id = self.instance
        answer = self.runtime.ask("offset_commit", request, OffsetCommitResponse)
        if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
            self.ledger.committed[topic, partition] = offset


@dataclass
class ClassicConsumer(Consumer):
    """A client of the classic protocol that gives everything up before it joins again."""

    state: str = "out"
    ticket: Ticket | None = None

    def step(self) -> None:
        if self.ticket is not None:
            self._look_for_answer()
        elif self.state == "out":
            self._join()
        elif self.state == "joined":
            self._heartbeat()

    def _send(self, api: str, request: Message) -> None:
        self.ticket = self.runtime.send(api, request, client=self.name)
        self._look_for_answer()

    def _join(self) -> None:
        self.owned = set()
        request = join(self.member_id, instance=self.instance, metadata=subscription(*self.topics))
        self._send("join_group", request)

    def _look_for_answer(self) -> None:
        assert self.ticket is not None
        answer = self.runtime.answers.get(self.ticket)
        if answer is None:
            return
        self.ticket = None
        match answer:
            case JoinGroupResponse():
                self._joined(answer)
            case SyncGroupResponse():
                self._synced(answer)
            case HeartbeatResponse() if answer.error_code:
                self._failed(ErrorCode(answer.error_code))

    def _joined(self, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._join()
        elif answer.error_code:
            self._failed(ErrorCode(answer.error_code))
        else:
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            plan = None
            if answer.leader == answer.member_id and not answer.skip_assignment:
                plan = self._plan([each.member_id for each in answer.members])
            self.state = "syncing"
            request = sync(self.member_id, self.epoch, plan, instance=self.instance)
            self._send("sync_group", request)

    def _plan(self, members: list[str]) -> dict[str, bytes]:
        shares: dict[str, dict[str, list[int]]] = {each: {} for each in members}
        slots = [
            (topic, index)
            for topic in self.topics
            for index in range(self.runtime.topics.partition_count(topic) or 0)
        ]
        self.random.shuffle(slots)
        for place, (topic, index) in enumerate(slots):
            shares[members[place % len(members)]].setdefault(topic, []).append(index)
        return {each: assignment(**share) for each, share in shares.items()}

    def _synced(self, answer: SyncGroupResponse) -> None:
        if answer.error_code:
            self._failed(ErrorCode(answer.error_code))
            return
        self.state = "joined"
        given = read_assignment(answer.assignment).assigned_partitions
        self.owned = {(each.topic, index) for each in given for index in each.partitions}
        self.ledger.given(self.epoch, self.instance or self.member_id, self.owned)

    def _failed(self, code: ErrorCode) -> None:
        self.state = "out"
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""

    def _heartbeat(self) -> None:
        self._send("heartbeat", beat(self.member_id, self.epoch, instance=self.instance))

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.topics_changed()

    def topics_changed(self) -> None:
        """The members look after this themselves: the leader assigns again."""
        if self.ticket is None:
            self.state = "out"

    def leave(self) -> None:
        """Leave as a clean shutdown does; a static member just goes away."""
        self.is_alive = False
        if self.member_id and self.instance is None and self.ticket is None:
            self.runtime.send("leave_group", leave(self.member_id))
        self.owned = set()

    def vanish(self) -> None:
        """Crash, connection and all."""
        self.is_alive = False
        self.owned = set()
        if self.ticket is not None and self.runtime.is_waiting(self.ticket):
            runtime = self.runtime
            runtime.answers[self.ticket] = HeartbeatResponse()  # nobody is there to answer
            runtime.carry_out(runtime.shard.forget(self.ticket, runtime.now_ms))

    def coordinator_restarted(self) -> None:
        """The connection broke: a request that waits is sent again."""
        if self.ticket is not None and self.runtime.is_waiting(self.ticket):
            self.runtime.answers[self.ticket] = HeartbeatResponse()
            self.ticket = None
            self.state = "out"


@dataclass
class ModernConsumer(Consumer):
    """A client of the consumer protocol."""

    pattern: str | None = None
    tells_all: bool = True
    target: Owned = field(default_factory=set)
    """What the coordinator last said it may own."""

    def __post_init__(self) -> None:
        self.member_id = f"modern-{self.name}"

    def step(self) -> None:
        is_full = self.tells_all or self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance,
            rebalance_timeout_ms=60_000 if is_full else -1,
            subscribed_topic_names=list(self.topics) if is_full else None,
            subscribed_topic_regex=self.pattern if is_full else None,
            topic_partitions=self._owned_now(),
        )
        answer = self.runtime.ask(
            "consumer_group_heartbeat", request, ConsumerGroupHeartbeatResponse
        )
        if self.random.random() < 0.05:
            self.tells_all = True  # the answer was lost
            return
        self._take(answer)

    def _owned_now(self) -> list[TopicPartitions]:
        by_topic: dict[TopicId, list[int]] = {}
        for topic, index in sorted(self.owned):
            topic_id = self.runtime.topics.id_of(topic)
            if topic_id is not None:
                by_topic.setdefault(topic_id, []).append(index)
        return [
            TopicPartitions(topic_id=each, partitions=indexes) for each, indexes in by_topic.items()
        ]

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            assert code in (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.UNRELEASED_INSTANCE_ID,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.NOT_COORDINATOR,
            ), code
            if code is not ErrorCode.NOT_COORDINATOR:
                self.epoch = 0
                self.owned = set()
            self.tells_all = True
            return
        assert answer.member_id == self.member_id
        assert answer.member_epoch >= self.epoch, "an epoch went back"
        self.epoch = answer.member_epoch
        self.tells_all = False
        if answer.assignment is not None:
            names = self.runtime.topics.name_of
            self.owned = {
                (names(TopicId(each.topic_id)) or "?", index)
                for each in answer.assignment.topic_partitions
                for index in each.partitions
            }

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.tells_all = True

    def topics_changed(self) -> None:
        """The coordinator looks after this."""

    def leave(self) -> None:
        self.is_alive = False
        self.owned = set()
        epoch = -1 if self.instance is None or self.random.random() < 0.5 else -2
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance,
        )
        self.runtime.send("consumer_group_heartbeat", request)

    def vanish(self) -> None:
        self.is_alive = False
        self.owned = set()

    def coordinator_restarted(self) -> None:
        self.tells_all = True
