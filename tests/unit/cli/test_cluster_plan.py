"""Plans for partitions: a broker is emptied, load is spread, and little is moved for it."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.cli.cluster_plan import (
    Assignment,
    NoRoom,
    assignment_of,
    next_moves,
    spread_evenly,
    target_of,
    without_broker,
)
from ottla.clients.address import Address
from ottla.clients.metadata import BrokerInfo, PartitionInfo, TopicInfo
from ottla.clients.placement import Reassignment
from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition

Racks = dict[int, str | None]


def brokers(racks: Racks) -> list[BrokerInfo]:
    return [
        BrokerInfo(BrokerId(each), Address("host", 9000 + each), rack)
        for each, rack in racks.items()
    ]


def partition(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def an_assignment(*rows: tuple[int, ...]) -> Assignment:
    return {
        partition(number): tuple(BrokerId(each) for each in row) for number, row in enumerate(rows)
    }


NO_RACKS: Racks = dict.fromkeys(range(1, 5))

assignments = st.integers(1, 3).flatmap(
    lambda factor: st.lists(
        st.permutations(range(1, 5)).map(lambda order: tuple(order[:factor])), max_size=40
    )
)
racks = st.fixed_dictionaries({each: st.sampled_from([None, "a", "b"]) for each in range(1, 5)})


@given(assignments, racks, st.integers(1, 4))
def test_an_emptied_broker_holds_nothing_and_nothing_else_moves(
    rows: list[tuple[int, ...]], places: Racks, leaving: int
) -> None:
    before = an_assignment(*rows)
    plan = without_broker(before, BrokerId(leaving), brokers(places))
    assert set(plan) == {each for each, replicas in before.items() if leaving in replicas}
    for each, replicas in plan.items():
        assert leaving not in replicas
        assert len(set(replicas)) == len(before[each])
        assert set(before[each]) - {leaving} <= set(replicas)
    assert without_broker({**before, **plan}, BrokerId(leaving), brokers(places)) == {}


def test_an_emptied_brokers_leaderships_go_to_those_who_have_the_records() -> None:
    before = an_assignment((1, 2, 3), (1, 2, 3), (1, 2, 3), (1, 2, 3))
    plan = without_broker(before, BrokerId(1), brokers(NO_RACKS))
    assert Counter(replicas[0] for replicas in plan.values()) == {2: 2, 3: 2}


def test_a_replica_goes_to_a_rack_where_the_partition_is_not_yet() -> None:
    plan = without_broker(
        an_assignment((1, 2)), BrokerId(2), brokers({1: "a", 2: "b", 3: "a", 4: "b"})
    )
    assert plan == an_assignment((1, 4))


def test_too_few_brokers_for_the_replicas_are_named() -> None:
    with pytest.raises(NoRoom, match=r"t-0 has 3 replicas, and there are only 2 brokers"):
        without_broker(an_assignment((1, 2, 3)), BrokerId(2), brokers(dict.fromkeys((1, 2, 3))))
    with pytest.raises(NoRoom):
        spread_evenly(an_assignment((1, 2)), brokers({3: None}))


@given(assignments, racks)
@example(
    [(1, 2, 3), (2, 1, 4), (2, 1, 4), (2, 1, 3), (2, 1, 3), (2, 1, 3), (2, 1, 4), (4, 2, 1)],
    NO_RACKS,
)
def test_a_spread_is_even_keeps_the_counts_and_is_final(
    rows: list[tuple[int, ...]], places: Racks
) -> None:
    before = an_assignment(*rows)
    after = {**before, **spread_evenly(before, brokers(places))}
    for each, replicas in after.items():
        assert len(set(replicas)) == len(replicas) == len(before[each])
    if len(set(places.values())) == 1:
        held = Counter(dict.fromkeys(places, 0))
        held.update(each for replicas in after.values() for each in replicas)
        assert max(held.values()) - min(held.values()) <= 1
    assert spread_evenly(after, brokers(places)) == {} or len(set(places.values())) > 1


def test_brokers_that_are_not_named_are_left_and_new_ones_filled() -> None:
    before = an_assignment((1, 2), (2, 1), (1, 2), (2, 1))
    plan = spread_evenly(before, brokers({2: None, 3: None}))
    after = {**before, **plan}
    assert {each for replicas in after.values() for each in replicas} == {2, 3}
    assert Counter(replicas[0] for replicas in after.values()) == {2: 2, 3: 2}


def test_partitions_on_their_way_count_as_where_they_will_be() -> None:
    row = PartitionInfo(0, BrokerId(1), replicas=(BrokerId(1), BrokerId(2), BrokerId(3)))
    topic = TopicInfo("t", NO_TOPIC_ID, False, (row,))
    move = Reassignment(partition(0), row.replicas, (BrokerId(3),), (BrokerId(1),))
    assert target_of(move) == (2, 3)
    assert assignment_of([topic]) == an_assignment((1, 2, 3))
    assert assignment_of([topic], [move]) == an_assignment((2, 3))


def test_no_more_moves_begin_than_may_be_under_way() -> None:
    plan = an_assignment((1,), (2,), (3,))
    assert list(next_moves(plan, 1, 3)) == [partition(0), partition(1)]
    assert next_moves(plan, 5, 3) == {}
