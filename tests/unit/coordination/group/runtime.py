"""A coordinator's runtime in miniature: a log, virtual time, timers and the answers given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from ottla.coordination.decision import Caller, Decision, StartTimer, Ticket, TimerKey
from ottla.coordination.group.shard import GroupShard
from ottla.errors import ErrorCode
from ottla.model.ids import NO_PRODUCER_ID, TopicId
from ottla.protocol.codec import encode
from ottla.protocol.message import Message
from ottla.settings.coordination import GroupSettings

M = TypeVar("M", bound=Message)

LATEST = {
    "join_group": 9,
    "sync_group": 5,
    "heartbeat": 4,
    "leave_group": 5,
    "offset_commit": 9,
    "txn_offset_commit": 5,
    "offset_delete": 0,
    "delete_groups": 3,
    "consumer_group_heartbeat": 1,
}
"""The version each request is sent in unless a test says otherwise."""


class TopicTable:
    """The topics of a test, by name and number of partitions."""

    def __init__(self, **counts: int) -> None:
        self.counts = dict(counts)
        self.ids = {name: self._id(name) for name in counts}

    @staticmethod
    def _id(name: str, life: int = 1) -> TopicId:
        return TopicId(name.encode().ljust(15, b".")[:15] + bytes([life]))

    def create(self, name: str, count: int, *, life: int = 1) -> None:
        self.counts[name] = count
        self.ids[name] = self._id(name, life)

    def delete(self, name: str) -> None:
        del self.counts[name]
        del self.ids[name]

    def partition_count(self, name: str) -> int | None:
        return self.counts.get(name)

    def names(self) -> Iterable[str]:
        return list(self.counts)

    def name_of(self, topic_id: TopicId) -> str | None:
        return next((name for name, each in self.ids.items() if each == topic_id), None)

    def id_of(self, name: str) -> TopicId | None:
        return self.ids.get(name)


class Runtime:
    """Does for one shard what the broker does, at once and on virtual time."""

    def __init__(
        self, settings: GroupSettings | None = None, topics: TopicTable | None = None
    ) -> None:
        self.settings = settings or GroupSettings()
        self.topics = topics or TopicTable(orders=3, payments=2)
        self.now_ms = 1_000_000
        self.log: list[tuple[bytes, bytes | None, int]] = []
        self.answers: dict[Ticket, Message] = {}
        self.versions: dict[Ticket, int] = {}
        self.timers: dict[TimerKey, int] = {}
        self.is_disk_full = False
        self._tickets = 0
        self._members = 0
        self.shard = self._new_shard()

    def _new_shard(self) -> GroupShard:
        return GroupShard(self.settings, self.topics, self._new_member_id)

    def _new_member_id(self, prefix: str) -> str:
        self._members += 1
        return f"{prefix}-{self._members}"

    def send(
        self, api: str, request: Message, *, version: int | None = None, client: str = "client"
    ) -> Ticket:
        """Send a request; its answer is found under the ticket once it is given."""
        self._tickets += 1
        ticket = Ticket(self._tickets)
        self.versions[ticket] = LATEST[api] if version is None else version
        caller = Caller(client, "/127.0.0.1", self.versions[ticket])
        decide = cast("Callable[..., Decision]", getattr(self.shard, api))
        decision = decide(request, caller, ticket, self.now_ms)
        producer_id = getattr(request, "producer_id", NO_PRODUCER_ID)
        self.carry_out(decision, producer_id)
        return ticket

    def ask(self, api: str, request: Message, answer_class: type[M], *, version: int = -1) -> M:
        """Send a request that is answered at once."""
        answer = self.answers[self.send(api, request, version=None if version < 0 else version)]
        assert isinstance(answer, answer_class)
        return answer

    def answer(self, ticket: Ticket, answer_class: type[M]) -> M:
        answer = self.answers[ticket]
        assert isinstance(answer, answer_class), answer
        return answer

    def is_waiting(self, ticket: Ticket) -> bool:
        return ticket not in self.answers

    def carry_out(self, decision: Decision, producer_id: int = NO_PRODUCER_ID) -> None:
        if decision.records and self.is_disk_full:
            decision = self.shard.append_failed(decision, ErrorCode.KAFKA_STORAGE_ERROR)
            assert not decision.records
        for record in decision.records:
            self.log.append((record.key, record.value, producer_id))
            self.shard.replay(record.key, record.value, producer_id=producer_id)
        for reply in decision.replies:
            assert reply.ticket not in self.answers, "a request was answered twice"
            self.answers[reply.ticket] = reply.response
            encode(reply.response, self.versions[reply.ticket])  # it must fit the version asked in
        for change in decision.timers:
            if isinstance(change, StartTimer):
                assert change.delay_ms >= 0
                self.timers[change.key] = self.now_ms + change.delay_ms
            else:
                self.timers.pop(change.key, None)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        self.log.append((b"commit" if is_commit else b"abort", None, producer_id))
        self.shard.replay_marker(producer_id, is_commit)

    def advance(self, delay_ms: int) -> None:
        """Let time pass; timers fire in order."""
        end_ms = self.now_ms + delay_ms
        while self.timers:
            key, due_ms = min(self.timers.items(), key=lambda item: (item[1], item[0]))
            if due_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, due_ms)
            del self.timers[key]
            self.carry_out(self.shard.timer_fired(key, self.now_ms))
        self.now_ms = end_ms

    def replayed_shard(self) -> GroupShard:
        """A shard that knows only the log."""
        shard = self._new_shard()
        for key, value, producer_id in self.log:
            if key in (b"commit", b"abort"):
                shard.replay_marker(producer_id, key == b"commit")
            else:
                shard.replay(key, value, producer_id=producer_id)
        return shard

    def restart(self) -> None:
        """The broker is killed and comes back: what is not in the log is gone."""
        self.shard = self.replayed_shard()
        self.timers.clear()
        self.carry_out(self.shard.on_loaded(self.now_ms))
