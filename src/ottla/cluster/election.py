"""Who leads a partition, and who is in sync after it. Pure: facts in, decisions out.

What every decision keeps, where the state before it kept it:
1. The set in sync is never empty. When its last member dies it stays there, without a leader: only
   it is known to have all that was committed.
2. A leader is alive, holds a replica, and is in the set in sync.
3. Without leave to elect uncleanly, a leader was in the set in sync before, and nobody enters it.
4. The order of the replicas decides between several that could lead; the first is preferred.
None says "no change is needed", so that no epoch grows for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ottla.cluster.image import NO_BROKER, PartitionImage
from ottla.cluster.layout import RECOVERED, RECOVERING
from ottla.model.ids import BrokerId

Key = TypeVar("Key")


class Leadership(msgspec.Struct, frozen=True):
    """Who is to lead a partition (NO_BROKER for none), and who is in sync with it."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    recovery_state: int = RECOVERED
    """RECOVERING where the leader may lack what was committed."""


class Situation(msgspec.Struct, frozen=True):
    """The brokers an election may count on."""

    alive: Collection[BrokerId]
    leaving: Collection[BrokerId] = ()
    """Alive, but about to stop: they lead nothing new."""

    def can_lead(self, broker: BrokerId) -> bool:
        return broker in self.alive and broker not in self.leaving


def first_leader(replicas: Sequence[BrokerId], situation: Situation) -> Leadership | None:
    """For a partition that never had one: the first living replica; None where none lives.

    All living replicas are in sync, as there is nothing to have missed.
    """
    alive = tuple(broker for broker in replicas if situation.can_lead(broker))
    return Leadership(alive[0], alive) if alive else None


def elect(
    partition: PartitionImage, situation: Situation, *, may_be_unclean: bool = False
) -> Leadership | None:
    """For a partition whose leader died, or that has none.

    The first living replica in sync leads; the dead leave the set in sync, unless it would be
    empty. Where nobody in sync lives, the first living replica leads if that is allowed, alone in
    sync and with the mark that committed records may be missing.
    """
    if partition.has_leader and situation.can_lead(partition.leader):
        return None
    leader = _first(partition.replicas, lambda b: b in partition.isr and situation.can_lead(b))
    if leader is not None:
        isr = tuple(b for b in partition.isr if b in situation.alive)
        return _changed(partition, Leadership(leader, isr, partition.recovery_state))
    if may_be_unclean:
        leader = _first(partition.replicas, situation.can_lead)
        if leader is not None:
            return Leadership(leader, (leader,), RECOVERING)
    return _without_leader(partition, situation)


def leave(partition: PartitionImage, situation: Situation) -> Leadership | None:
    """For a partition with a replica on a broker that is about to stop.

    Its leadership moves to another living replica in sync, and the broker leaves the set in sync.
    None where nothing is to change, and where nobody else could lead: then the broker leads until
    it is gone, as a partition is better led than not.
    """
    stays = tuple(b for b in partition.isr if situation.can_lead(b))
    if not stays:
        return None
    if partition.has_leader and situation.can_lead(partition.leader):
        leader = partition.leader
    else:
        leader = next(b for b in partition.replicas if b in stays)
    return _changed(partition, Leadership(leader, stays, partition.recovery_state))


def drop_dead(partition: PartitionImage, situation: Situation) -> Leadership | None:
    """For a partition whose leader lives and some of whose replicas in sync died.

    Kafka leaves that to the leader's own measure of lag; to do it at once lets acks=all go on at
    once. The leader stays.
    """
    if not partition.has_leader or partition.leader not in situation.alive:
        return None
    isr = tuple(b for b in partition.isr if b in situation.alive)
    return _changed(partition, Leadership(partition.leader, isr, partition.recovery_state))


def prefer(partition: PartitionImage, situation: Situation) -> Leadership | None:
    """Back to the preferred leader, the first replica, where it lives and is in sync."""
    preferred = partition.replicas[0]
    if partition.leader == preferred or preferred not in partition.isr:
        return None
    if not situation.can_lead(preferred):
        return None
    return Leadership(preferred, partition.isr, partition.recovery_state)


def imbalance_percent(
    partitions: Iterable[PartitionImage],
) -> dict[BrokerId, float]:
    """For each broker, how many of the partitions that prefer it are led by another, in percent."""
    preferring: Counter[BrokerId] = Counter()
    elsewhere: Counter[BrokerId] = Counter()
    for partition in partitions:
        preferred = partition.replicas[0]
        preferring[preferred] += 1
        elsewhere[preferred] += partition.leader != preferred
    return {broker: 100.0 * elsewhere[broker] / count for broker, count in preferring.items()}


def elect_evenly(
    partitions: Mapping[Key, PartitionImage],
    situation: Situation,
    load: Mapping[BrokerId, int],
    may_be_unclean: Callable[[Key], bool] = lambda _: False,
) -> dict[Key, Leadership]:
    """New leaders for many partitions that lost theirs at once, spread over those who can lead.

    Each goes to the candidate that leads least by then; `load` says how many each leads now. The
    order of the replicas decides between equals. The sets in sync are as `elect` makes them.
    """
    counts = Counter(load)
    chosen: dict[Key, Leadership] = {}
    candidates = {key: _candidates(each, situation) for key, each in partitions.items()}
    # Those with the least choice first, so that the others can go around them.
    for key in sorted(partitions, key=lambda key: len(candidates[key])):
        able = candidates[key]
        plain = elect(partitions[key], situation, may_be_unclean=not able and may_be_unclean(key))
        if plain is None:
            continue
        if able:
            leader = min(able, key=lambda broker: counts[broker])
            plain = Leadership(leader, plain.isr, plain.recovery_state)
        counts[plain.leader] += 1
        chosen[key] = plain
    return chosen


def is_sound(partition: PartitionImage) -> bool:
    """Whether a state can stand: somebody in sync, who holds a replica, the leader among them."""
    if not partition.isr or not set(partition.isr) <= set(partition.replicas):
        return False
    return not partition.has_leader or partition.leader in partition.isr


def _candidates(partition: PartitionImage, situation: Situation) -> list[BrokerId]:
    return [b for b in partition.replicas if b in partition.isr and situation.can_lead(b)]


def _without_leader(partition: PartitionImage, situation: Situation) -> Leadership | None:
    """Nobody can lead. Who of the set in sync still lives stays in it; else the last leader does.

    A living member here is one about to stop.
    """
    alive = tuple(b for b in partition.isr if b in situation.alive)
    if alive and partition.leader in alive:
        return None
    return _changed(partition, Leadership(NO_BROKER, partition.isr, partition.recovery_state))


def _changed(partition: PartitionImage, wanted: Leadership) -> Leadership | None:
    now = Leadership(partition.leader, partition.isr, partition.recovery_state)
    return wanted if wanted != now else None


def _first(brokers: Iterable[BrokerId], condition: Callable[[BrokerId], bool]) -> BrokerId | None:
    return next((broker for broker in brokers if condition(broker)), None)
