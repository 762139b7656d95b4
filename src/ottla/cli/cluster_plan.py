"""Which brokers should hold which partitions: plans to empty a broker and to spread evenly. Pure.

A plan names only what changes. Replicas stay where they are as far as possible; a new one goes to
the broker with the fewest, in a rack the partition is not in yet where there is one. The first
replica of a partition is its preferred leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from ottla.clients.metadata import BrokerInfo, TopicInfo
from ottla.clients.placement import Reassignment
from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import BrokerId, TopicPartition

Assignment = dict[TopicPartition, tuple[BrokerId, ...]]


class NoRoom(OttlaError):
    """A partition has more replicas than there are brokers for them."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def __init__(self, partition: TopicPartition, replicas: int, brokers: int) -> None:
        self.partition = partition
        self.replicas = replicas
        self.brokers = brokers
        super().__init__(
            f"{partition.topic}-{partition.partition} has {replicas} replicas,"
            f" and there are only {brokers} brokers to hold them"
        )


def assignment_of(topics: Iterable[TopicInfo], moves: Iterable[Reassignment] = ()) -> Assignment:
    """Where partitions are, or for those on their way, where they will be."""
    found: Assignment = {
        TopicPartition(topic.name, row.partition): row.replicas
        for topic in topics
        for row in topic.partitions
    }
    for move in moves:
        if move.partition in found:
            found[move.partition] = target_of(move)
    return found


def target_of(move: Reassignment) -> tuple[BrokerId, ...]:
    """The replicas a partition will have when its move is done."""
    return tuple(each for each in move.replicas if each not in move.removing)


def without_broker(
    assignment: Assignment, broker: BrokerId, brokers: Iterable[BrokerInfo]
) -> Assignment:
    """What to change so that a broker holds nothing any more; NoRoom where that cannot be."""
    plan = _Plan(assignment, [each for each in brokers if each.id != broker])
    for partition, replicas in assignment.items():
        if broker in replicas:
            plan.replace(partition, broker)
    return plan.changes()


def spread_evenly(assignment: Assignment, brokers: Iterable[BrokerInfo]) -> Assignment:
    """What to change so that these brokers, and no others, hold about as much and lead as much."""
    plan = _Plan(assignment, brokers)
    for partition, replicas in assignment.items():
        for broker in replicas:
            if broker not in plan.racks:
                plan.replace(partition, broker)
    plan.level()
    plan.level_leaders()
    return plan.changes()


def next_moves(
    plan: Mapping[TopicPartition, Sequence[BrokerId]], under_way: int, at_once: int
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """The part of a plan to begin now, so that no more than `at_once` are under way."""
    room = max(0, at_once - under_way)
    return {partition: tuple(plan[partition]) for partition in sorted(plan)[:room]}


class _Plan:
    """An assignment that is being changed, and how much each broker has of it."""

    def __init__(self, assignment: Assignment, brokers: Iterable[BrokerInfo]) -> None:
        self.racks = {each.id: each.rack for each in brokers}
        self._before = assignment
        self._now = dict(assignment)
        self._held = Counter(each for replicas in assignment.values() for each in replicas)
        self._led = Counter(replicas[0] for replicas in assignment.values() if replicas)

    def changes(self) -> Assignment:
        return {
            partition: replicas
            for partition, replicas in self._now.items()
            if replicas != self._before[partition]
        }

    def replace(self, partition: TopicPartition, old: BrokerId) -> None:
        """Puts another broker into the place of one."""
        replicas = self._now[partition]
        rest = tuple(each for each in replicas if each != old)
        free = [broker for broker in self.racks if broker not in rest]
        if not free:
            raise NoRoom(partition, len(replicas), len(self.racks))
        racks = {self.racks.get(each) for each in rest}
        new = min(free, key=lambda each: (self.racks[each] in racks, self._held[each], each))
        if replicas[0] == old and rest:
            # One that has the records already leads at once: the one that leads the least.
            heads = [each for each in rest if each in self.racks] or [new]
            head = min(heads, key=lambda each: (self._led[each], each))
            order = (head, *(each for each in (*rest, new) if each != head))
            self._set(partition, order)
            return
        self._set(partition, tuple(new if each == old else each for each in replicas))

    def level(self) -> None:
        """Moves replicas from those who hold the most to those who hold the least."""
        while self._move_one():
            pass

    def level_leaders(self) -> None:
        """Lets others lead where one is preferred for more than its share."""
        while sum(self._relieve(partition) for partition in sorted(self._now)):
            pass  # one who leads less by now may take over more

    def _relieve(self, partition: TopicPartition) -> bool:
        """Gives a partition another head where that makes the loads more equal."""
        replicas = self._now[partition]
        if not replicas:
            return False
        head = replicas[0]
        least = min(replicas, key=lambda each: (self._led[each], each))
        share = ceil(len(self._now) / max(1, len(self.racks)))
        if self._led[head] <= share or self._led[least] + 1 >= self._led[head]:
            return False
        self._set(partition, (least, *(each for each in replicas if each != least)))
        return True

    def _move_one(self) -> bool:
        """Each move makes the loads more equal, so that there is a last one."""
        order = sorted(self.racks, key=lambda each: (self._held[each], each))
        for full in reversed(order):
            for empty in order:
                if self._held[full] - self._held[empty] < 2:
                    break
                for partition, replicas in sorted(self._now.items()):
                    if full in replicas and self._may_move(replicas, full, empty):
                        new = tuple(empty if each == full else each for each in replicas)
                        self._set(partition, new)
                        return True
        return False

    def _may_move(self, replicas: Sequence[BrokerId], old: BrokerId, new: BrokerId) -> bool:
        """Whether the partition is not there yet, and would be in no fewer racks."""
        if new in replicas:
            return False
        others = {self.racks.get(each) for each in replicas if each != old}
        return self.racks[new] not in others or self.racks.get(old) in others

    def _set(self, partition: TopicPartition, replicas: tuple[BrokerId, ...]) -> None:
        before = self._now[partition]
        self._held.subtract(before)
        self._held.update(replicas)
        self._led.subtract(before[:1])
        self._led.update(replicas[:1])
        self._now[partition] = replicas
