"""Kafka Streams itself, on its own test driver, gives the same for the same records.

Skipped where Java or Kafka's jars are absent, see java_streams.py.
"""

import os
from pathlib import Path

import pytest

from streams import java_streams
from streams.cases import ALL as CASES
from streams.running import random_steps, run
from streams.topologies import ALL as TOPOLOGIES

SEEDS = int(os.environ.get("OTTLA_JAVA_SEEDS", "1"))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not java_streams.is_at_hand(), reason="needs Java and Kafka's jars")
def test_kafka_streams_gives_the_same_for_every_case(tmp_path: Path) -> None:
    cases = [(case.topology, case.steps()) for case in CASES]
    cases += [(name, random_steps(name, seed)) for name in TOPOLOGIES for seed in range(SEEDS)]
    theirs = java_streams.run_cases(cases, tmp_path)
    assert len(theirs) == len(cases)
    differing = [
        (name, steps, run(name, steps), expected)
        for (name, steps), expected in zip(cases, theirs, strict=True)
        if run(name, steps) != {topic: records for topic, records in expected.items() if records}
    ]
    assert not differing, differing[0]
