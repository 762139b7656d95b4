"""Leaders cut from their followers alone, for longer than replicas may lag: another leads, and
nothing acknowledged by all is lost."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from simulation.driver import simulate
from simulation.plan import plan

SEEDS = range(2000, 2006)
HANDED_OVER = "is to lead it"


def test_leaders_that_are_cut_off_hand_over_and_keep_all_promises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="ottla.broker.relief")
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
    assert any(HANDED_OVER in record.getMessage() for record in caplog.records)
