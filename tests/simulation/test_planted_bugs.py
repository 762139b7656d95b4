"""The simulation finds bugs: each test breaks the code as it was broken once, here or elsewhere.

The stories are short and pointed, so that few seeds are enough; the battery's are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ottla.broker import replica_fetcher
from ottla.broker.partition import Partition
from ottla.cluster import election, renunciation
from ottla.cluster.election import Situation
from ottla.cluster.image import PartitionImage
from ottla.cluster.in_sync import InSync
from ottla.model.ids import BrokerId, LeaderEpoch, Offset
from ottla.storage import log
from simulation.driver import simulate
from simulation.plan import Plan, plan

SEEDS = range(1000, 1060)


def a_story(seed: int, *faults: str, **changes: Any) -> Plan:
    """Three brokers under one or two kinds of trouble, with plenty of it."""
    story = replace(
        plan(seed),
        brokers=3,
        replication=3,
        topics={"topic-0": 2},
        syncs_always=False,
        producers=("idempotent", "leader-only"),
        members=1,
        faults=faults,
        pause_seconds=(0.2, 2.0),
        outage_seconds=(0.2, 10.0),
        chaos_seconds=12.0,
    )
    return replace(story, **changes)


def violated(story: Callable[[int], Plan]) -> set[str]:
    """The rules that the first seed broke which broke any."""
    for seed in SEEDS:
        outcome = simulate(seed, story=story(seed))
        rules = {violation.partition(":")[0] for violation in outcome.violations}
        if rules - {"surprise"}:
            return rules
    return set()


def test_acknowledging_before_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Partition, _end: Offset, _deadline: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    monkeypatch.setattr(Partition, "is_committed", lambda *_: True)
    monkeypatch.setattr(Partition, "committed", at_once)
    assert violated(lambda seed: a_story(seed, "kill", "isolate")) & {"I1", "I2", "I4"}


@pytest.mark.long
def test_showing_what_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "readable_end", lambda self, **_: self.log.end_offset)
    assert violated(lambda seed: a_story(seed, "isolate", "kill")) & {"I2"}


@pytest.mark.long
def test_electing_who_is_not_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def anybody_alive(partition: PartitionImage, situation: Situation) -> list[BrokerId]:
        return [broker for broker in partition.replicas if situation.can_lead(broker)]

    monkeypatch.setattr(election, "_candidates", anybody_alive)
    story = partial(a_story, pause_seconds=(0.3, 3.0))
    assert violated(lambda seed: story(seed, "from-brokers", "kill", "session")) & {"I1", "I8"}


def test_keeping_a_tail_that_parts_from_the_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_fetcher, "_cut_to_common_history", lambda *_: None)
    assert violated(lambda seed: a_story(seed, "isolate", "pause"))


@pytest.mark.long
def test_truncating_to_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    follow = Partition._follow

    def cut(self: Partition, leader_epoch: LeaderEpoch) -> None:
        follow(self, leader_epoch)
        self.log.truncate_to(self.log.high_watermark)

    monkeypatch.setattr(Partition, "_follow", cut)
    assert violated(lambda seed: a_story(seed, "kill", "kill-all")) & {"I1", "I2", "I4"}


@pytest.mark.long
def test_taking_a_smaller_set_in_sync_for_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    def maximal(self: InSync) -> frozenset[Any]:
        return self.members if self.proposal is None else self.proposal.members

    monkeypatch.setattr(InSync, "maximal", property(maximal))
    assert violated(lambda seed: a_story(seed, "from-brokers", "from-store", "kill"))


@pytest.mark.long
def test_counting_on_followers_that_did_not_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "is_unsynced", property(lambda _: False))
    story = partial(a_story, syncs_always=True, pause_seconds=(0.05, 0.8))
    assert violated(lambda seed: story(seed, "power")) & {"I1", "I2", "I4", "I6"}


@pytest.mark.long
def test_trusting_a_machine_that_lost_power(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = renunciation._trusted
    monkeypatch.setattr(
        renunciation,
        "_trusted",
        lambda partition, broker, **_: trusted(partition, broker, may_lack_records=False),
    )
    assert violated(lambda seed: a_story(seed, "power")) & {"I1", "I2", "I4", "I8"}


def test_writing_a_repeated_batch_again(monkeypatch: pytest.MonkeyPatch) -> None:
    find_duplicate = log.find_duplicate

    def looks_in_vain(*arguments: Any) -> None:
        find_duplicate(*arguments)

    monkeypatch.setattr(log, "find_duplicate", looks_in_vain)
    story = partial(a_story, producers=("idempotent", "idempotent"), pause_seconds=(0.05, 0.5))
    assert violated(lambda seed: story(seed, "connections")) & {"I3"}
