"""Whatever fails, returns, is elected or moved, in any order: states stay sound, epochs grow, and
what was acknowledged is with whoever leads.

The decisions and what they write are the controller's own; logs and their copying are a model. A
broker whose machine goes down loses the end of its log; the only loss of acknowledged records that
is allowed is that of a broker which was alone in sync.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster import reassignment
from ottla.cluster.changes import NewTopic, change_in_sync, create_topic
from ottla.cluster.controller_decisions import (
    carry_out,
    prefer_where_unbalanced,
    release_broker,
    settle_leaders,
)
from ottla.cluster.election import Situation, is_sound
from ottla.cluster.image import BrokerImage, ClusterImage, Draft, PartitionImage
from ottla.cluster.placement import Turn
from ottla.cluster.reassignment_changes import continue_moves, write_moves
from ottla.cluster.renunciation import renounce
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.settings import BrokerSettings

BROKERS = tuple(map(BrokerId, range(1, 6)))
KEY = TopicPartition("t", 0)
Record = tuple[int, int]
"""The leader epoch it was written in, and a number of its own."""


@dataclass
class Model:
    """One partition: its state in the store, and the log of every broker that holds it."""

    image: ClusterImage
    alive: set[BrokerId] = field(default_factory=lambda: set(BROKERS))
    leaving: set[BrokerId] = field(default_factory=set)
    shaken: set[BrokerId] = field(default_factory=set)
    """Brokers whose machine went down, and that have not come back."""
    logs: dict[BrokerId, list[Record]] = field(default_factory=lambda: {b: [] for b in BROKERS})
    acknowledged: list[Record] = field(default_factory=list)
    high_watermark: int = 0
    """As the leader of now knows it: at worst nothing when it begins."""
    epoch_start: int = 0
    written: int = 0

    @property
    def state(self) -> PartitionImage:
        return self.image.topics["t"].partitions[0]

    @property
    def leader(self) -> BrokerId | None:
        leader = self.state.leader
        return leader if leader in self.alive else None

    def situation(self) -> Situation:
        return Situation(frozenset(self.alive), frozenset(self.leaving & self.alive))

    def change(self, decide: Callable[[Draft], object]) -> None:
        """Lets a decision become the truth, and checks what must stay true."""
        before = self.state
        draft = Draft(self.image)
        try:
            decide(draft)
        except OttlaError:
            return
        self.image = draft.image()
        after = self.state
        assert is_sound(after), (before, after)
        if after != before:
            self.check_epochs(before, after)
        if after.leader_epoch > before.leader_epoch:
            self.high_watermark = 0
            leader = self.leader
            self.epoch_start = len(self.logs[leader]) if leader is not None else 0
        for broker in set(before.replicas) - set(after.replicas):
            self.logs[broker] = []

    def check_epochs(self, before: PartitionImage, after: PartitionImage) -> None:
        assert after.leader_epoch >= before.leader_epoch
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch, "a leader has its epoch alone"
        if after.isr != before.isr or set(before.replicas) - set(after.replicas):
            assert after.partition_epoch > before.partition_epoch, "leaders must notice"

    def shared_length(self, broker: BrokerId) -> int:
        """How much of the leader's log a broker has."""
        assert self.leader is not None
        count = 0
        for one, other in zip(self.logs[self.leader], self.logs[broker], strict=False):
            if one != other:
                break
            count += 1
        return count

    def commit(self) -> None:
        """What all in sync have is acknowledged; and who leads has what was."""
        leader = self.leader
        if leader is None:
            return
        log = self.logs[leader]
        assert log[: len(self.acknowledged)] == self.acknowledged, "acknowledged records are lost"
        safe = min(self.shared_length(member) for member in self.state.isr)
        self.high_watermark = max(self.high_watermark, safe)
        if safe > len(self.acknowledged):
            self.acknowledged = log[:safe]

    # --- what happens, several things together ---

    def progress(self, number: int) -> None:
        """Records are written, copied by some and acknowledged, and who can joins."""
        for _ in range(1 + number % 3):
            self.append(0)
        for place in range(5):
            if number >> place & 1 or place == 0:
                for _ in range(self.written + 1):
                    self.copy(place)
        self.commit()
        for place in range(5):
            self.join(place)
        self.commit()

    def fail_over(self, number: int) -> None:
        """The leader dies and another is elected, before or after it is back."""
        leader = self.state.leader
        if leader in BROKERS:
            place = BROKERS.index(leader)
            self.kill(place)
            if number % 3:
                self.settle(0)
                self.commit()
            if number % 2:
                self.come_back(place)

    def bounce(self, number: int) -> None:
        """A machine goes down and comes back before anybody has noticed."""
        self.power_cut(number)
        self.come_back(number)

    # --- what happens, one thing at a time ---

    def append(self, _: int) -> None:
        if self.leader is not None:
            self.written += 1
            self.logs[self.leader].append((self.state.leader_epoch, self.written))

    def copy(self, number: int) -> None:
        broker, leader = BROKERS[number % 5], self.leader
        if leader is None or broker == leader or broker not in self.state.replicas:
            return
        if broker in self.alive:
            have = self.shared_length(broker)
            end = have + 1 + number // 5 % 3
            self.logs[broker] = self.logs[leader][:end]

    def join(self, number: int) -> None:
        broker, state = BROKERS[number % 5], self.state
        if self.leader is None or broker in state.isr or broker not in self.alive:
            return
        have = self.shared_length(broker)
        if broker in state.replicas and have >= max(self.high_watermark, self.epoch_start):
            self.set_in_sync({*state.isr, broker})

    def shrink(self, number: int) -> None:
        broker = BROKERS[number % 5]
        if self.leader is not None and broker != self.leader:
            self.set_in_sync(set(self.state.isr) - {broker})

    def set_in_sync(self, members: set[BrokerId]) -> None:
        led = self.state
        self.change(lambda draft: change_in_sync(draft, "t", 0, led=led, isr=members))

    def kill(self, number: int) -> None:
        self.alive.discard(BROKERS[number % 5])
        self.leaving.discard(BROKERS[number % 5])

    def power_cut(self, number: int) -> None:
        broker = BROKERS[number % 5]
        self.kill(number)
        self.shaken.add(broker)
        self.logs[broker] = self.logs[broker][: number // 5 % 4]

    def come_back(self, number: int) -> None:
        broker = BROKERS[number % 5]
        if broker in self.alive:
            return
        is_shaken = broker in self.shaken
        if is_shaken and self.state.isr == (broker,):
            # Nobody has more by now: what it lost is lost.
            kept = self.logs[broker]
            count = 0
            while count < min(len(kept), len(self.acknowledged)):
                if kept[count] != self.acknowledged[count]:
                    break
                count += 1
            self.acknowledged = self.acknowledged[:count]
        self.change(lambda draft: renounce(draft, broker, may_lack_records=is_shaken))
        self.shaken.discard(broker)
        self.alive.add(broker)

    def settle(self, _: int) -> None:
        def decide(draft: Draft) -> None:
            settle_leaders(draft, draft.topics.values(), self.situation(), lambda _: False)
            continue_moves(draft, ["t"], self.situation())

        before = self.state
        self.change(decide)
        after, situation = self.state, self.situation()
        if any(map(situation.can_lead, after.isr)):
            assert after.leader in self.alive, "somebody in sync could lead"
        if after.leader in self.alive:
            assert set(after.isr) <= self.alive, "the dead hold writers up"
        if len(after.replicas) < len(before.replicas):
            assert set(after.replicas) == set(after.isr), "a move ends when all have arrived"

    def release(self, number: int) -> None:
        broker = BROKERS[number % 5]
        if broker in self.alive:
            self.leaving.add(broker)
            self.change(lambda draft: release_broker(draft, broker, self.situation()))

    def prefer(self, _: int) -> None:
        self.change(lambda draft: prefer_where_unbalanced(draft, self.situation(), 0))

    def move(self, number: int) -> None:
        first, count = number % 5, 1 + number // 5 % 3
        wanted = [BROKERS[(first + step) % 5] for step in range(count)]
        move = self.move_to(lambda: reassignment.begin(self.state, wanted, self.situation()))
        self.write(move)

    def cancel(self, _: int) -> None:
        self.write(self.move_to(lambda: reassignment.cancel(self.state, self.situation())))

    def move_to(self, wish: Callable[[], reassignment.Move]) -> reassignment.Move | None:
        try:
            return wish()
        except OttlaError:
            return None

    def write(self, move: reassignment.Move | None) -> None:
        if move is not None:
            self.change(lambda draft: write_moves(draft, "t", {0: move}))


def a_model(factor: int) -> Model:
    brokers = {broker: BrokerImage(broker, (), None, 1) for broker in BROKERS}
    draft = Draft(ClusterImage(brokers=brokers))
    create_topic(
        draft,
        NewTopic("t", assignments={0: BROKERS[:factor]}),
        topic_id=TopicId(b"t".ljust(16)),
        turn=Turn(),
        settings=BrokerSettings(),
    )
    return Model(draft.image())


EVENTS = (
    Model.progress,
    Model.progress,
    Model.progress,
    Model.fail_over,
    Model.fail_over,
    Model.bounce,
    Model.append,
    Model.append,
    Model.copy,
    Model.copy,
    Model.join,
    Model.shrink,
    Model.kill,
    Model.power_cut,
    Model.come_back,
    Model.come_back,
    Model.settle,
    Model.settle,
    Model.release,
    Model.prefer,
    Model.move,
    Model.cancel,
)
events = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 59)), min_size=20, max_size=80)


@given(st.integers(1, 4), events)
def test_no_history_loses_what_was_acknowledged(
    factor: int, history: list[tuple[Callable[[Model, int], None], int]]
) -> None:
    model = a_model(factor)
    for event, number in history:
        event(model, number)
        model.commit()


@given(st.integers(1, 4), events)
def test_when_all_are_back_every_partition_is_led_and_every_move_ends(
    factor: int, history: list[tuple[Callable[[Model, int], None], int]]
) -> None:
    model = a_model(factor)
    for event, number in history:
        event(model, number)
        model.commit()
    for number in range(5):
        model.kill(number)  # Who is leaving goes, and is there anew.
        model.come_back(number)
    for _ in range(3):
        model.settle(0)
        assert model.leader is not None
        for broker in range(5):
            for _ in range(len(model.logs[model.leader]) + 1):
                model.copy(broker)
            model.join(broker)
            model.commit()
    model.settle(0)
    state = model.state
    assert not state.adding_replicas
    assert not state.removing_replicas
    assert set(state.isr) == set(state.replicas)


def test_nothing_is_decided_without_need() -> None:
    model = a_model(3)
    before = model.image
    model.settle(0)
    model.prefer(0)
    assert model.image == before
    assert carry_out(Draft(before), {}) == []
