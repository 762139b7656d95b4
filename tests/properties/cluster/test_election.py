"""What holds for every election and every step of a move, whatever the state before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.cluster import reassignment
from ottla.cluster.election import (
    Leadership,
    Situation,
    drop_dead,
    elect,
    elect_evenly,
    is_sound,
    leave,
    prefer,
)
from ottla.cluster.image import NO_BROKER, PartitionImage
from ottla.cluster.layout import RECOVERING
from ottla.errors import RequestFailed
from ottla.model.ids import BrokerId, LeaderEpoch

BROKERS = tuple(map(BrokerId, range(1, 7)))


@st.composite
def partitions(draw: st.DrawFn) -> PartitionImage:
    """A sound partition, also one in the middle of a move."""
    replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True)))
    isr = tuple(draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))
    leader = draw(st.sampled_from([*isr, NO_BROKER]))
    kinds = draw(st.lists(st.sampled_from("akr"), min_size=len(replicas), max_size=len(replicas)))
    adding = tuple(b for b, kind in zip(replicas, kinds, strict=True) if kind == "a")
    removing = tuple(b for b, kind in zip(replicas, kinds, strict=True) if kind == "r")
    if len(adding) == len(replicas) or len(removing) == len(replicas):
        adding = removing = ()
    return PartitionImage(0, leader, LeaderEpoch(3), isr, replicas, 4, 0, adding, removing)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    alive = draw(st.frozensets(st.sampled_from(BROKERS)))
    leaving = draw(st.frozensets(st.sampled_from(sorted(alive)))) if alive else frozenset()
    return Situation(alive, leaving)


def after(partition: PartitionImage, chosen: Leadership | None) -> PartitionImage:
    if chosen is None:
        return partition
    return replace(
        partition, leader=chosen.leader, isr=chosen.isr, recovery_state=chosen.recovery_state
    )


@given(partitions(), situations(), st.booleans())
def test_every_election_leaves_a_sound_state(
    partition: PartitionImage, situation: Situation, unclean: bool
) -> None:
    chosen = [
        elect(partition, situation, may_be_unclean=unclean),
        leave(partition, situation),
        drop_dead(partition, situation),
        prefer(partition, situation),
        *elect_evenly({0: partition}, situation, {}).values(),
    ]
    assert all(is_sound(after(partition, each)) for each in chosen)


@given(partitions(), situations())
def test_without_leave_nobody_enters_the_set_in_sync_and_only_its_members_lead(
    partition: PartitionImage, situation: Situation
) -> None:
    for chosen in (
        elect(partition, situation),
        leave(partition, situation),
        drop_dead(partition, situation),
        prefer(partition, situation),
    ):
        if chosen is not None:
            assert set(chosen.isr) <= set(partition.isr)
            assert chosen.leader in (*partition.isr, NO_BROKER)


@given(partitions(), situations())
def test_a_partition_is_led_whenever_a_replica_in_sync_can_lead(
    partition: PartitionImage, situation: Situation
) -> None:
    led = after(partition, elect(partition, situation))
    could_lead = any(situation.can_lead(broker) for broker in partition.isr)
    assert led.leader in situation.alive or not could_lead


@given(partitions(), situations())
def test_an_unclean_leader_is_alone_in_sync_and_marked(
    partition: PartitionImage, situation: Situation
) -> None:
    chosen = elect(partition, situation, may_be_unclean=True)
    if chosen is not None and chosen.leader not in (*partition.isr, NO_BROKER):
        assert chosen.isr == (chosen.leader,)
        assert chosen.recovery_state == RECOVERING


@given(partitions(), situations(), st.booleans())
def test_an_election_held_again_changes_nothing(
    partition: PartitionImage, situation: Situation, unclean: bool
) -> None:
    led = after(partition, elect(partition, situation, may_be_unclean=unclean))
    assert elect(led, situation, may_be_unclean=unclean) is None
    left = after(partition, leave(partition, situation))
    assert leave(left, situation) is None


@given(st.lists(partitions(), max_size=20), situations())
def test_even_elections_differ_from_plain_ones_only_in_the_leader(
    many: list[PartitionImage], situation: Situation
) -> None:
    numbered = dict(enumerate(many))
    even = elect_evenly(numbered, situation, {})
    for number, partition in numbered.items():
        plain = elect(partition, situation)
        chosen = even.get(number)
        assert (plain is None) == (chosen is None)
        if plain is not None and chosen is not None:
            assert chosen.isr == plain.isr
            assert (chosen.leader == NO_BROKER) == (plain.leader == NO_BROKER)


WISHES = st.lists(st.sampled_from(BROKERS), min_size=1, unique=True)


@given(partitions(), situations(), st.one_of(st.none(), WISHES))
def test_every_step_of_a_move_keeps_the_partition_sound(
    partition: PartitionImage, situation: Situation, wish: list[BrokerId] | None
) -> None:
    everybody = Situation(BROKERS, situation.leaving)
    try:
        if wish is None:
            move = reassignment.cancel(partition, everybody)
        else:
            move = reassignment.begin(partition, wish, everybody)
    except RequestFailed:
        return
    assignment = move.assignment
    assert set(assignment.target) <= set(assignment.replicas)
    assert not set(assignment.adding) & set(assignment.removing)
    moved = replace(
        after(partition, move.leadership),
        replicas=assignment.replicas,
        adding_replicas=assignment.adding,
        removing_replicas=assignment.removing,
    )
    assert is_sound(moved)


@given(partitions(), WISHES)
def test_a_move_that_is_carried_through_ends_at_the_wish(
    partition: PartitionImage, wish: list[BrokerId]
) -> None:
    everybody = Situation(BROKERS)
    partition = after(partition, elect(partition, everybody))
    try:
        move = reassignment.begin(partition, wish, everybody)
    except RequestFailed:
        return
    moving = replace(
        after(partition, move.leadership),
        replicas=move.assignment.replicas,
        adding_replicas=move.assignment.adding,
        removing_replicas=move.assignment.removing,
    )
    if not move.assignment.is_moving:
        assert set(move.assignment.replicas) == set(wish)
        return
    copied = replace(moving, isr=moving.replicas)
    step = reassignment.next_step(copied, everybody)
    assert step is not None
    assert step.assignment == reassignment.Assignment(tuple(wish))
    led = replace(after(copied, step.leadership), replicas=step.assignment.replicas)
    assert is_sound(led)
