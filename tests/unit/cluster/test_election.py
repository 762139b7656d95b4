"""Elections by example; tests/properties/cluster has what holds for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.cluster.election import (
    Leadership,
    Situation,
    drop_dead,
    elect,
    elect_evenly,
    first_leader,
    imbalance_percent,
    is_sound,
    leave,
    prefer,
)
from ottla.cluster.image import NO_BROKER, PartitionImage
from ottla.cluster.layout import RECOVERED, RECOVERING
from ottla.model.ids import BrokerId, LeaderEpoch


def brokers(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def a_partition(
    leader: int, isr: Sequence[int], replicas: Sequence[int] = (1, 2, 3), recovery: int = RECOVERED
) -> PartitionImage:
    return PartitionImage(
        0, BrokerId(leader), LeaderEpoch(5), brokers(*isr), brokers(*replicas), 7, recovery
    )


def alive(*numbers: int, leaving: Sequence[int] = ()) -> Situation:
    return Situation(brokers(*numbers), brokers(*leaving))


def led_by(leader: int, *isr: int, recovery: int = RECOVERED) -> Leadership:
    return Leadership(BrokerId(leader), brokers(*isr), recovery)


def test_a_partition_with_a_living_leader_needs_no_election() -> None:
    assert elect(a_partition(1, [1, 2]), alive(1)) is None


def test_the_first_living_replica_in_sync_leads_and_the_dead_leave_the_set() -> None:
    assert elect(a_partition(1, [3, 1, 2]), alive(2, 3)) == led_by(2, 3, 2)


def test_a_replica_out_of_sync_does_not_lead() -> None:
    assert elect(a_partition(1, [1, 3]), alive(2, 3)) == led_by(3, 3)
    assert elect(a_partition(1, [1]), alive(2, 3)) == led_by(NO_BROKER, 1)


def test_the_last_replica_in_sync_stays_so_when_it_dies() -> None:
    dead = elect(a_partition(1, [1, 2]), alive(3))
    assert dead == led_by(NO_BROKER, 1, 2)
    assert elect(a_partition(NO_BROKER, [1, 2]), alive(3)) is None


def test_a_replica_in_sync_that_comes_back_leads_again() -> None:
    assert elect(a_partition(NO_BROKER, [1]), alive(1, 2)) == led_by(1, 1)


def test_where_allowed_a_replica_out_of_sync_leads_alone_and_marked() -> None:
    partition = a_partition(1, [1])
    assert elect(partition, alive(3, 2), may_be_unclean=True) == led_by(2, 2, recovery=RECOVERING)
    assert elect(partition, alive(), may_be_unclean=True) == led_by(NO_BROKER, 1)


def test_an_election_among_those_in_sync_is_clean_even_where_it_need_not_be() -> None:
    assert elect(a_partition(1, [1, 3]), alive(2, 3), may_be_unclean=True) == led_by(3, 3)


def test_a_leader_that_is_still_recovering_hands_the_mark_on() -> None:
    partition = a_partition(1, [1, 2], recovery=RECOVERING)
    assert elect(partition, alive(2)) == led_by(2, 2, recovery=RECOVERING)


def test_a_broker_about_to_stop_hands_its_partitions_over_and_leaves_the_set() -> None:
    situation = alive(1, 2, 3, leaving=[1])
    assert leave(a_partition(1, [1, 2, 3]), situation) == led_by(2, 2, 3)
    assert leave(a_partition(2, [1, 2]), situation) == led_by(2, 2)
    assert leave(a_partition(2, [2, 3]), situation) is None


def test_a_broker_about_to_stop_leads_on_where_nobody_else_can() -> None:
    situation = alive(1, 2, 3, leaving=[1])
    assert leave(a_partition(1, [1]), situation) is None
    assert elect(a_partition(1, [1]), situation) is None


def test_a_broker_about_to_stop_is_not_elected() -> None:
    assert elect(a_partition(1, [1, 2, 3]), alive(2, 3, leaving=[2])) == led_by(3, 2, 3)


def test_the_dead_leave_the_set_of_a_living_leader() -> None:
    assert drop_dead(a_partition(1, [1, 2, 3]), alive(1, 3)) == led_by(1, 1, 3)
    assert drop_dead(a_partition(1, [1, 3]), alive(1, 3)) is None
    assert drop_dead(a_partition(2, [2, 3]), alive(1, 3)) is None


def test_the_preferred_leader_leads_again_once_in_sync() -> None:
    assert prefer(a_partition(2, [2, 1]), alive(1, 2)) == led_by(1, 2, 1)
    assert prefer(a_partition(2, [2]), alive(1, 2)) is None
    assert prefer(a_partition(2, [2, 1]), alive(2)) is None
    assert prefer(a_partition(2, [2, 1]), alive(1, 2, leaving=[1])) is None
    assert prefer(a_partition(1, [2, 1]), alive(1, 2)) is None


def test_a_new_partition_is_led_by_its_first_living_replica() -> None:
    assert first_leader(brokers(1, 2, 3), alive(2, 3)) == led_by(2, 2, 3)
    assert first_leader(brokers(1), alive(2)) is None


def test_imbalance_is_the_share_of_partitions_led_by_somebody_else() -> None:
    partitions = [a_partition(leader, [1, 2, 3]) for leader in (1, 2, 1, 3)]
    partitions.append(a_partition(2, [2], replicas=[2]))
    assert imbalance_percent(partitions) == {1: 50.0, 2: 0.0}


def test_a_dead_brokers_partitions_are_spread_over_the_others() -> None:
    lost = {n: a_partition(1, [1, 2, 3, 4], replicas=[1, 2, 3, 4]) for n in range(90)}
    chosen = elect_evenly(lost, alive(2, 3, 4), load={BrokerId(2): 30, BrokerId(4): 60})
    leaders = Counter(each.leader for each in chosen.values())
    assert leaders == {2: 30, 3: 60}


def test_partitions_without_choice_go_first_so_that_others_go_around_them() -> None:
    lost = {
        "free": a_partition(1, [1, 2, 3]),
        "bound": a_partition(1, [1, 2]),
        "lost": a_partition(1, [1]),
        "fine": a_partition(2, [2]),
    }
    chosen = elect_evenly(lost, alive(2, 3), load={})
    assert chosen == {
        "bound": led_by(2, 2),
        "free": led_by(3, 2, 3),
        "lost": led_by(NO_BROKER, 1),
    }


def test_a_state_is_sound_with_its_leader_in_sync_and_only_replicas_there() -> None:
    assert is_sound(a_partition(1, [1, 2]))
    assert is_sound(a_partition(NO_BROKER, [2]))
    assert not is_sound(a_partition(1, []))
    assert not is_sound(a_partition(1, [2]))
    assert not is_sound(a_partition(1, [1, 9]))
