"""Runs a case of the semantics battery: steps in, the records of each output topic out."""

from __future__ import annotations

import random
from typing import Any

from ottla.streams import TopologyTestDriver
from streams.topologies import build

OUTPUTS = ("out", "out-a", "out-b")
Step = dict[str, Any]


def run(
    name: str, steps: list[Step], *, restarts: bool = False, partitions: int = 1
) -> dict[str, list[list[Any]]]:
    """The outputs by topic, as key, value and timestamp; `restarts` after every step."""
    driver = TopologyTestDriver(build(name), app_id="cases", partitions=partitions)
    for step in steps:
        if "advance" in step:
            driver.advance_wall_clock(step["advance"])
        else:
            driver.pipe(step["topic"], step["key"], step["value"], step["timestamp"])
        if restarts:
            driver.restart()
    return _written(driver)


def run_in_batches(name: str, steps: list[Step], size: int) -> dict[str, list[list[Any]]]:
    """The same, with `size` records at once, as micro-batches come."""
    driver = TopologyTestDriver(build(name), app_id="cases")
    for start in range(0, len(steps), size):
        batch = steps[start : start + size]
        driver.pipe_batch((s["topic"], s["key"], s["value"], s["timestamp"]) for s in batch)
        driver.restart()
    return _written(driver)


def _written(driver: TopologyTestDriver) -> dict[str, list[list[Any]]]:
    written = {topic: driver.read(topic) for topic in OUTPUTS}
    return {
        topic: [[one.key, one.value, one.timestamp_ms] for one in records]
        for topic, records in written.items()
        if records
    }


def random_steps(name: str, seed: int) -> list[Step]:
    """Records with few keys and close times, some late, some without a key or a value."""
    chance = random.Random(f"{name}-{seed}")
    topics = build(name).input_topics()
    steps: list[Step] = []
    # Kafka Streams loses final results when stream time leaps over a store's retention; we do not
    gentle = name.endswith("_close")
    now_ms = chance.randrange(30)
    for _ in range(chance.randrange(5, 40)):
        now_ms += chance.choice((0, 1, 1, 2) if gentle else (0, 1, 1, 2, 3, 5, 8, 20))
        late_ms = chance.choice((0, 0, 1) if gentle else (0, 0, 0, 1, 4, 9, 16, 30))
        if name == "process" and chance.random() < 0.2:
            steps.append({"advance": chance.choice((5, 20, 45))})
            continue
        key = chance.choice(("k", "l", "m", "k", "l", "m", "a", "b", "k" if gentle else None))
        value = chance.choice(("a", "b", "c", "ab", "bc", "d", "ca", None))
        steps.append(
            {
                "topic": chance.choice(topics),
                "key": key,
                "value": value,
                "timestamp": max(0, now_ms - late_ms),
            }
        )
    if gentle:
        return steps
    far_ms = now_ms + 1000  # closes all windows
    for topic in topics:
        for last in ("x", "y"):
            steps.append({"topic": topic, "key": last, "value": "z", "timestamp": far_ms})
            far_ms += 1000
    return steps
