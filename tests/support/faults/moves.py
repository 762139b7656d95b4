"""Partitions that move while brokers die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla import Admin
from ottla.errors import OttlaError
from support.eventually import NeverHappened, eventually
from support.faults.stage import Stage

MOVE_SECONDS_MAX = 60.0

T = TypeVar("T")


def move_to_one_and_back_to_three(stage: Stage) -> None:
    """From three replicas to one and back; an old leader dies, then the only replica."""
    first, second, third = stage.rows()[0].replicas
    (newcomer,) = set(range(len(stage.cluster.brokers))) - {first, second, third}
    _begin(stage, [newcomer])
    stage.cluster.kill(first)
    _wait_moved(stage, [newcomer])
    stage.cluster.start_brokers([first])
    stage.go_on()
    _begin(stage, [first, second, newcomer])
    stage.cluster.kill(newcomer)
    stage.cluster.start_brokers([newcomer])
    _wait_moved(stage, [first, second, newcomer])
    stage.go_on()
    leader = stage.leader
    stage.cluster.kill(leader)
    stage.wait_other_leader(leader)
    stage.cluster.start_brokers([leader])


def cancel_a_move(stage: Stage) -> None:
    """Its new replica cannot be reached, and its leader dies before it is called off."""
    before = tuple(stage.rows()[0].replicas)
    first, second, _ = before
    (newcomer,) = set(range(len(stage.cluster.brokers))) - set(before)
    for other in before:
        stage.cluster.network.hold(other, newcomer)
    _begin(stage, [newcomer, first, second])
    leader = stage.leader
    stage.cluster.kill(leader)
    stage.wait_other_leader(leader)
    _begin(stage, None)
    _wait_moved(stage, before)
    stage.cluster.heal()
    stage.cluster.start_brokers([leader])


def _begin(stage: Stage, replicas: Sequence[int] | None) -> None:
    keys = stage.partitions()
    refused = insist(
        stage, lambda admin: (admin.reassign_partitions(dict.fromkeys(keys, replicas)),)
    )
    assert refused == ({},), refused


def _wait_moved(stage: Stage, replicas: Sequence[int]) -> None:
    wanted = sorted(replicas)
    stage.wait_rows(
        lambda rows: all(sorted(row.replicas) == wanted for row in rows), f"replicas {wanted}"
    )
    eventually(
        lambda: insist(stage, lambda admin: (admin.list_reassignments(),)) == ([],),
        "the end of all moves",
        timeout_seconds=MOVE_SECONDS_MAX,
    )


def insist(stage: Stage, ask: Callable[[Admin], T]) -> T:
    """Asks again while there is no controller, or another one."""
    troubles: list[OttlaError] = []

    def answer() -> T | None:
        try:
            with Admin(stage.cluster.bootstrap_servers) as admin:
                return ask(admin)
        except OttlaError as error:
            troubles.append(error)
            return None

    try:
        return eventually(answer, "an answer", timeout_seconds=MOVE_SECONDS_MAX)
    except NeverHappened as error:
        raise AssertionError(f"the controller does not answer: {troubles[-1:]}") from error
