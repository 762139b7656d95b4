"""Leaders cut from their followers alone, for longer than replicas may lag: another leads, and
nothing acknowledged by all is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ottla.broker import relief
from simulation.driver import simulate
from simulation.plan import plan

SEEDS = range(2000, 2006)


def test_leaders_that_are_cut_off_hand_over_and_keep_all_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_up: list[Any] = []
    give_up = relief.give_up

    def counted(*arguments: Any) -> Any:
        given_up.append(give_up(*arguments))
        return given_up[-1]

    monkeypatch.setattr(relief, "give_up", counted)
    for seed in SEEDS:
        story = replace(
            plan(seed),
            brokers=3,
            replication=3,
            topics={"topic-0": 3},
            producers=("idempotent", "leader-only", "transactional"),
            members=1,
            faults=("from-brokers",),
            pause_seconds=(4.0, 8.0),
            outage_seconds=(8.0, 15.0),
            chaos_seconds=25.0,
        )
        assert simulate(seed, story=story).violations == (), f"seed {seed}"
    assert given_up, "nobody handed over"
