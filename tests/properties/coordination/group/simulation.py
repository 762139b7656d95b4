"""A group under fire: random clients, time, faults and restarts from one seed, then peace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from ottla.coordination.group.classic_group import ClassicGroup
from ottla.coordination.group.consumer_group import ConsumerGroup
from ottla.protocol.codec import decode
from ottla.protocol.messages.group_records import GroupMetadataValue
from ottla.settings.coordination import GroupSettings
from properties.coordination.group.clients import (
    ClassicConsumer,
    Consumer,
    Ledger,
    ModernConsumer,
)
from properties.coordination.group.picture import check_replay
from unit.coordination.group.classic_client import committed
from unit.coordination.group.requests import GROUP
from unit.coordination.group.runtime import Runtime, TopicTable

HEARTBEAT_MS = 3000
PEACE_STEPS = 100
CHECKS_PER_REPLAY = 20
"""Replaying the whole log is dear, so it is not done at every step."""


@dataclass
class Chances:
    """What kind of group it is, and what may happen to it."""

    modern_share: float = 0.0
    """How many of the clients speak the consumer protocol."""
    static_share: float = 0.0
    members_max: int = 5
    steps: int = 60
    topics_change: bool = False


@dataclass
class Simulation:
    """One run."""

    seed: int
    chances: Chances
    clients: list[ClassicConsumer | ModernConsumer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.topics = TopicTable(orders=4, payments=3)
        settings = replace(GroupSettings(), group_consumer_session_timeout_ms=10_000)
        self.runtime = Runtime(settings, self.topics)
        self.ledger = Ledger()
        self.names = 0
        self.last_generation = 0
        self.seen = 0
        self.checks = 0

    # --- chaos ------------------------------------------------------------------------------------

    def run(self) -> None:
        for _ in range(self.chances.steps):
            self._something_happens()
            self.check()
        self._peace()

    def _something_happens(self) -> None:
        roll = self.random.random()
        if roll < 0.12:
            self._add_client()
        elif roll < 0.16:
            self._pick_and("leave")
        elif roll < 0.20:
            self._pick_and("vanish")
        elif roll < 0.24:
            self._restart()
        elif roll < 0.28:
            self._bounce_static()
        elif roll < 0.32:
            self._resubscribe()
        elif roll < 0.34:
            self._disk_trouble()
        elif roll < 0.36 and self.chances.topics_change:
            self._change_topics()
        else:
            self._time_passes(self.random.choice((200, 1000, 3000, 3000, 8000)))

    def _alive(self) -> list[ClassicConsumer | ModernConsumer]:
        return [each for each in self.clients if each.is_alive]

    def _add_client(self, instance: str | None = None) -> None:
        if len(self._alive()) >= self.chances.members_max:
            return
        self.names += 1
        if instance is None and self.random.random() < self.chances.static_share:
            instance = f"instance-{self.names}"
        is_modern = self.random.random() < self.chances.modern_share
        kind = ModernConsumer if is_modern else ClassicConsumer
        client = kind(
            self.runtime,
            self.ledger,
            self.random,
            name=str(self.names),
            instance=instance,
            topics=self._some_topics(),
        )
        self.clients.append(client)
        client.step()

    def _some_topics(self) -> tuple[str, ...]:
        return self.random.choice((("orders",), ("orders", "payments"), ("orders", "payments")))

    def _pick_and(self, what: str) -> None:
        alive = self._alive()
        if alive:
            getattr(self.random.choice(alive), what)()

    def _bounce_static(self) -> None:
        static = [each for each in self._alive() if each.instance is not None]
        if static:
            client = self.random.choice(static)
            client.vanish() if isinstance(client, ClassicConsumer) else client.leave()
            self._add_client(client.instance)

    def _resubscribe(self) -> None:
        alive = self._alive()
        if alive:
            self.random.choice(alive).subscribe(self._some_topics())

    def _change_topics(self) -> None:
        count = self.topics.counts["payments"]
        self.topics.create("payments", min(count + 1, 6))
        runtime = self.runtime
        runtime.carry_out(runtime.shard.topics_changed(runtime.now_ms))
        for client in self._alive():
            client.topics_changed()

    def _restart(self) -> None:
        self.runtime.restart()
        for client in self.clients:
            client.coordinator_restarted()

    def _disk_trouble(self) -> None:
        self.runtime.is_disk_full = True
        self._time_passes(2000)
        self.runtime.is_disk_full = False

    def _time_passes(self, delay_ms: int) -> None:
        end_ms = self.runtime.now_ms + delay_ms
        while self.runtime.now_ms < end_ms:
            self.runtime.advance(200)
            for client in self._alive():
                self._let_act(client)

    def _let_act(self, client: ClassicConsumer | ModernConsumer) -> None:
        is_waiting = isinstance(client, ClassicConsumer) and client.state != "joined"
        if not is_waiting and self.runtime.now_ms < client.due_ms:
            return
        client.due_ms = self.runtime.now_ms + HEARTBEAT_MS
        if self.random.random() < 0.03:
            client.due_ms += self.random.choice((5_000, 15_000))  # it stalls
        client.step()
        if self.random.random() < 0.3:
            client.commit_something()

    # --- peace ------------------------------------------------------------------------------------

    def _peace(self) -> None:
        """Nothing happens any more: the group must come to rest with every partition read."""
        if not self._alive():
            self._add_client()
        for _ in range(PEACE_STEPS):
            self.runtime.advance(1000)
            for client in self._alive():
                client.step()
        self.check()
        check_replay(self.runtime.shard, self.runtime.replayed_shard())
        group = self.runtime.shard._groups.get(GROUP)
        assert group is not None
        assert group.state_name == "Stable", (group.state_name, group.members)
        alive = {each.member_id for each in self._alive()}
        assert set(group.members) == alive
        self._check_coverage(group)
        waiting = [each for each in self.runtime.versions if each not in self.runtime.answers]
        assert not waiting

    def _check_coverage(self, group: ClassicGroup | ConsumerGroup) -> None:
        owned = [each for client in self._alive() for each in client.owned]
        assert len(owned) == len(set(owned)), "a partition is read twice"
        if isinstance(group, ConsumerGroup):
            wanted = group.subscribed_topics()
        else:
            leader = next(each for each in self._alive() if each.member_id == group.leader)
            wanted = frozenset(leader.topics)
        expected = {
            (topic, index) for topic in wanted for index in range(self.topics.counts[topic])
        }
        assert set(owned) == expected

    # --- what must always be true -----------------------------------------------------------------

    def check(self) -> None:
        self._check_log()
        for (topic, partition), offset in self.ledger.committed.items():
            assert committed(self.runtime, topic, partition) == offset, "a commit was lost"
        self.checks += 1
        if self.checks % CHECKS_PER_REPLAY == 0:
            check_replay(self.runtime.shard, self.runtime.replayed_shard())
        group = self.runtime.shard._groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            self._check_ownership(group)

    def _check_log(self) -> None:
        """Generations and epochs in the log never go down."""
        for key, value, _ in self.runtime.log[self.seen :]:
            if value is None:
                continue
            record_type = int.from_bytes(key[:2], "big")
            if record_type == 2:
                version = int.from_bytes(value[:2], "big")
                generation = decode(GroupMetadataValue, value[2:], version).generation
            elif record_type == 3:
                generation = int.from_bytes(value[2:6], "big")
            else:
                continue
            assert generation >= self.last_generation
            self.last_generation = generation
        self.seen = len(self.runtime.log)

    def _check_ownership(self, group: ConsumerGroup) -> None:
        """Nobody whom the group knows believes to own what another one does."""
        assert group.target_epoch <= group.epoch
        held: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for partition in (*member.assigned, *member.revoking):
                assert held.setdefault(partition, member.member_id) == member.member_id
        assert held == group.owners
        owners: dict[tuple[str, int], Consumer] = {}
        for client in self._alive():
            member = group.members.get(client.member_id)
            if member is None or client.epoch > member.epoch:
                continue
            for each in client.owned:
                other = owners.setdefault(each, client)
                assert other is client, f"{each} is with {other.name} and {client.name}"
