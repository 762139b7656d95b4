"""Where replicas go: spread evenly, over racks first, and as a client asks when it may."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.placement import Place, Turn, check_assignments, place
from ottla.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from ottla.model.ids import BrokerId


def places(*racks: str | None) -> list[Place]:
    return [Place(BrokerId(number), rack) for number, rack in enumerate(racks)]


CLUSTERS = st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9)


@given(CLUSTERS, st.integers(1, 60), st.data())
def test_replicas_are_distinct_and_leaders_even(
    racks: list[str | None], partition_count: int, data: st.DataObject
) -> None:
    brokers = places(*racks)
    factor = data.draw(st.integers(1, len(brokers)))
    turn = Turn(data.draw(st.integers(0, 100)), data.draw(st.integers(0, 100)))
    assignment = place(brokers, range(partition_count), factor, turn)
    assert len(assignment) == partition_count
    for replicas in assignment:
        assert len(set(replicas)) == len(replicas) == factor
    leaders = Counter(replicas[0] for replicas in assignment)
    counts = [leaders[each.broker] for each in brokers]
    assert max(counts) - min(counts) <= 1


@given(CLUSTERS, st.integers(1, 30), st.data())
def test_no_rack_has_two_replicas_while_another_has_none(
    racks: list[str | None], partition_count: int, data: st.DataObject
) -> None:
    brokers = places(*racks)
    factor = data.draw(st.integers(1, len(brokers)))
    rack_of = {each.broker: each.rack for each in brokers}
    for replicas in place(brokers, range(partition_count), factor, Turn()):
        assert len({rack_of[broker] for broker in replicas}) == min(factor, len(set(racks)))


def test_followers_of_a_broker_are_spread_over_the_others() -> None:
    brokers = places(*[None] * 5)
    assignment = place(brokers, range(20), 2, Turn())
    followers = [replicas[1] for replicas in assignment if replicas[0] == 0]
    assert sorted(followers) == [1, 2, 3, 4]


def test_added_partitions_go_on_where_the_round_stopped() -> None:
    brokers = places(*[None] * 3)
    whole = place(brokers, range(7), 2, Turn(1, 1))
    parts = place(brokers, range(4), 2, Turn(1, 1)) + place(brokers, range(4, 7), 2, Turn(1, 1))
    assert whole == parts


@pytest.mark.parametrize("factor", [0, 4])
def test_more_replicas_than_brokers_are_refused(factor: int) -> None:
    with pytest.raises(InvalidReplicationFactor, match="3 brokers"):
        place(places(None, None, None), range(1), factor, Turn())


def test_an_assignment_is_taken_in_the_order_of_its_partitions() -> None:
    brokers = dict.fromkeys(map(BrokerId, (1, 2)))
    assert check_assignments({1: [2, 1], 0: [1, 2]}, brokers) == [(1, 2), (2, 1)]


@pytest.mark.parametrize(
    ("assignments", "reason"),
    [
        ({}, "no partition"),
        ({1: [1]}, "numbered"),
        ({0: [1], 2: [1]}, "numbered"),
        ({0: []}, "no broker"),
        ({0: [1, 1]}, "twice"),
        ({0: [1], 1: [1, 2]}, "as many"),
        ({0: [3]}, "broker 3"),
    ],
)
def test_an_impossible_assignment_is_refused(
    assignments: dict[int, list[int]], reason: str
) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=reason):
        check_assignments(assignments, dict.fromkeys(map(BrokerId, (1, 2))))
