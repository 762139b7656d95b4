"""Kafka Streams itself: runs cases on its own test driver.

Needs Java with a compiler and Kafka's jars: in the folder OTTLA_KAFKA_JARS names, or where
../shared/bench/run-kafka.sh puts them.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from streams.running import Step

SOURCE = Path(__file__).parent / "java" / "TopologyCases.java"


def is_at_hand() -> bool:
    has_jars = any(jars().glob("kafka-streams-test-utils-*.jar"))
    return has_jars and shutil.which("javac") is not None


def jars() -> Path:
    named = os.environ.get("OTTLA_KAFKA_JARS")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(named) if named else cache / "kafka-anchor" / "libs"


def run_cases(cases: list[tuple[str, list[Step]]], folder: Path) -> list[dict[str, Any]]:
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
