"""Kafka Streams itself, on its own test driver, gives the same for the same records.

Needs Java with a compiler and Kafka's jars: in the folder OTTLA_KAFKA_JARS names, or where
../shared/bench/run-kafka.sh puts them. Skipped where they are absent.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streams.cases import ALL as CASES
from streams.running import Step, random_steps, run
from streams.test_semantics import steps_of
from streams.topologies import ALL as TOPOLOGIES

SOURCE = Path(__file__).parent / "java" / "TopologyCases.java"
SEEDS = int(os.environ.get("OTTLA_JAVA_SEEDS", "1"))


def jars() -> Path:
    named = os.environ.get("OTTLA_KAFKA_JARS")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(named) if named else cache / "kafka-anchor" / "libs"


def run_on_java(cases: list[tuple[str, list[Step]]], folder: Path) -> list[dict[str, Any]]:
    path = f"{folder}{os.pathsep}{jars()}/*"
    subprocess.run(["javac", "-cp", path, "-d", folder, SOURCE], check=True, timeout=100)
    lines = [json.dumps({"topology": name, "steps": steps}) for name, steps in cases]
    done = subprocess.run(
        ["java", f"-Dstate.dir={folder / 'state'}", "-cp", path, "TopologyCases"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not shutil.which("javac"), reason="needs a Java compiler")
@pytest.mark.skipif(
    not list(jars().glob("kafka-streams-test-utils-*.jar")), reason="needs Kafka's jars"
)
def test_kafka_streams_gives_the_same_for_every_case(tmp_path: Path) -> None:
    cases = [(case.topology, steps_of(case)) for case in CASES]
    cases += [(name, random_steps(name, seed)) for name in TOPOLOGIES for seed in range(SEEDS)]
    theirs = run_on_java(cases, tmp_path)
    assert len(theirs) == len(cases)
    differing = [
        (name, steps, run(name, steps), expected)
        for (name, steps), expected in zip(cases, theirs, strict=True)
        if run(name, steps) != {topic: records for topic, records in expected.items() if records}
    ]
    assert not differing, differing[0]
