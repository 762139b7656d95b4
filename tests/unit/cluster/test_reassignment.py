"""Moves of partitions to other brokers, step by step, turned and cancelled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ottla.cluster.election import Leadership, Situation
from ottla.cluster.image import PartitionImage
from ottla.cluster.reassignment import (
    Assignment,
    Move,
    assignment_of,
    begin,
    cancel,
    is_ready,
    lead_target,
    next_step,
)
from ottla.errors import ErrorCode, InvalidReplicaAssignment, RequestFailed
from ottla.model.ids import BrokerId, LeaderEpoch


def brokers(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


EVERYBODY = Situation(brokers(1, 2, 3, 4, 5, 6))


def a_partition(
    leader: int, isr: Sequence[int], assignment: Assignment | None = None
) -> PartitionImage:
    assigned = assignment or Assignment(brokers(1, 2, 3))
    return PartitionImage(
        index=0,
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(5),
        isr=brokers(*isr),
        replicas=assigned.replicas,
        partition_epoch=7,
        adding_replicas=assigned.adding,
        removing_replicas=assigned.removing,
    )


MOVING = Assignment(brokers(3, 4, 5, 1, 2), brokers(4, 5), brokers(1, 2))


def test_a_move_begins_with_the_old_and_the_new_replicas_together() -> None:
    move = begin(a_partition(1, [1, 2, 3]), brokers(3, 4, 5), EVERYBODY)
    assert move.assignment == MOVING
    assert move.leadership is None
    assert MOVING.target == brokers(3, 4, 5)
    assert MOVING.origin == brokers(3, 1, 2)


@pytest.mark.parametrize("wanted", [(), (1, 1), (1, 9)])
def test_a_wish_for_nobody_somebody_twice_or_a_stranger_is_refused(wanted: Sequence[int]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        begin(a_partition(1, [1]), brokers(*wanted), EVERYBODY)


def test_a_dead_replica_may_stay() -> None:
    move = begin(a_partition(1, [1]), brokers(1, 2), Situation(brokers(1)))
    assert move.assignment == Assignment(brokers(1, 2, 3), (), brokers(3))


def test_a_move_waits_until_all_that_stay_are_in_sync() -> None:
    assert not is_ready(a_partition(1, [1, 2, 3, 4], MOVING))
    assert is_ready(a_partition(1, [1, 3, 4, 5], MOVING))
    assert not is_ready(a_partition(1, [1, 2, 3]))
    assert next_step(a_partition(3, [3, 4], MOVING), EVERYBODY) is None


def test_the_leader_moves_in_the_step_that_removes_its_replica() -> None:
    ready = a_partition(1, [1, 2, 3, 4, 5], MOVING)
    assert next_step(ready, EVERYBODY) == Move(
        Assignment(brokers(3, 4, 5)), Leadership(BrokerId(3), brokers(3, 4, 5))
    )
    assert lead_target(ready, EVERYBODY) == Leadership(BrokerId(3), brokers(3, 4, 5))
    assert lead_target(replace(ready, leader=BrokerId(5)), EVERYBODY) == Leadership(
        BrokerId(5), brokers(3, 4, 5)
    )


def test_a_move_ends_with_just_the_wanted_replicas() -> None:
    moved = a_partition(3, [3, 4, 5], MOVING)
    assert lead_target(moved, EVERYBODY) is None
    assert next_step(moved, EVERYBODY) == Move(Assignment(brokers(3, 4, 5)))


def test_a_move_waits_where_no_replica_that_stays_could_lead() -> None:
    with pytest.raises(RequestFailed) as raised:
        lead_target(a_partition(1, [1, 3, 4, 5], MOVING), Situation(brokers(1, 2)))
    assert raised.value.code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_a_cancelled_move_drops_the_new_replicas_at_once() -> None:
    before = a_partition(1, [1, 3, 4], MOVING)
    move = cancel(before, EVERYBODY)
    assert move.assignment == Assignment(brokers(3, 1, 2))
    assert move.leadership == Leadership(BrokerId(1), brokers(1, 3))
    assert move.abandons(assignment_of(before)) == brokers(4, 5)


def test_a_cancelled_move_takes_the_leadership_back() -> None:
    move = cancel(a_partition(4, [4, 2], MOVING), EVERYBODY)
    assert move.leadership == Leadership(BrokerId(2), brokers(2))


def test_a_move_whose_old_replicas_all_lag_cannot_be_cancelled() -> None:
    with pytest.raises(RequestFailed) as raised:
        cancel(a_partition(4, [4, 5], MOVING), EVERYBODY)
    assert raised.value.code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_there_is_nothing_to_cancel_without_a_move() -> None:
    with pytest.raises(RequestFailed) as raised:
        cancel(a_partition(1, [1]), EVERYBODY)
    assert raised.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_can_be_turned_to_other_brokers() -> None:
    move = begin(a_partition(1, [1, 2, 3, 4], MOVING), brokers(3, 6), EVERYBODY)
    assert move.assignment == Assignment(brokers(3, 6, 1, 2), brokers(6), brokers(1, 2))
    assert move.leadership == Leadership(BrokerId(1), brokers(1, 2, 3))
