"""Python's clients beside each other on one broker: records per second, CPU and memory of each.

A scenario is a direction and a record size; every client runs it in a process of its own, one after
the other. The bars are ratios between clients in the same scenario, so they hold for each broker.
With other work on the machine only the CPU figures mean something.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median

import brokers
import meter
import one_client
import report
from scenarios import AtLeast, Effort, Scenario, fresh_topic

PROCESS_SECONDS_MAX = 300
RECORDS = {100: 2_000_000, 1000: 500_000}
"""By value bytes, for the quickest clients; the others get their share of it."""
SHARES = {"kafka-python": 0.05, "aiokafka": 0.25, "ottla plain": 0.25, "ottla.aio plain": 0.25}
ROW_CLIENTS = ("ottla", "ottla.aio")
GROUP = "clients"


@dataclass(frozen=True, slots=True)
class Bar:
    """One client's records per second, at least so many times another's."""

    client: str
    other: str
    produce: float
    consume: float

    @property
    def figure(self) -> str:
        return f"{self.client} over {self.other}"


BARS = (
    *(Bar(client, "aiokafka", 3.0, 1.5) for client in ROW_CLIENTS),
    *(Bar(client, "confluent-kafka", 0.5, 0.5) for client in ROW_CLIENTS),
    Bar("ottla Arrow", "confluent-kafka", 2.0, 2.0),
)


def scenarios() -> Iterator[Scenario]:
    """Both directions with both sizes."""
    for direction in ("produce", "consume"):
        for value_bytes in RECORDS:
            bars = tuple(
                AtLeast(bar.figure, bar.produce if direction == "produce" else bar.consume)
                for bar in BARS
            )
            run = partial(compare, direction=direction, value_bytes=value_bytes)
            yield Scenario(GROUP, f"clients {direction}, {value_bytes} B", run, bars)


def compare(
    broker: brokers.Broker, effort: Effort, *, direction: str, value_bytes: int
) -> meter.Figures:
    """Every client in turn; the figures carry the client's name."""
    records = max(1000, int(RECORDS[value_bytes] * effort.scale))
    figures: meter.Figures = {}
    metered = meter.Meter(broker.pid)
    with fresh_topic(broker, 1) as filled:
        if direction == "consume":
            _run(
                one_client.Order(
                    "confluent-kafka", "produce", broker.bootstrap, filled, records, value_bytes
                )
            )
        for client in one_client.WORK:
            if one_client.is_the_same(client, direction):
                continue
            share = max(1000, int(records * SHARES.get(client, 1.0)))
            with fresh_topic(broker, 1) as empty:
                topic = empty if direction == "produce" else filled
                order = one_client.Order(
                    client, direction, broker.bootstrap, topic, share, value_bytes
                )
                measured = _run(order)
            if measured is not None:
                figures[f"{client}: records/s"] = share / measured["wall_s"]
                figures[f"{client}: CPU s/M"] = measured["cpu_s"] / share * 1e6
                figures[f"{client}: peak MiB"] = measured["peak_mib"]
    figures["other_share"] = metered.stop()["other_share"]
    return figures | _ratios(figures)


def _run(order: one_client.Order) -> dict[str, float] | None:
    """What the process measured; None where this installation has no such client."""
    done = subprocess.run(
        [sys.executable, one_client.__file__, json.dumps(asdict(order))],
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS_MAX,
        env={**os.environ, "PYTHONPATH": str(brokers.ROOT / "src")},
    )
    if done.returncode == one_client.NOT_THERE:
        return None
    if done.returncode:
        raise one_client.Short(f"{order.client}: {done.stderr.strip()[-400:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _ratios(figures: meter.Figures) -> meter.Figures:
    ratios = {}
    for bar in BARS:
        ours, theirs = (figures.get(f"{one}: records/s") for one in (bar.client, bar.other))
        if ours and theirs:
            ratios[bar.figure] = ours / theirs
    return ratios


def tables(results: Iterable[report.Result]) -> str:
    """For each scenario and broker, a line for each client."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        for name, value in result.figures.items():
            if ": " in name:
                found[result.scenario, result.broker][name].append(value)
    return "\n\n".join(_table(*place, figures) for place, figures in found.items())


def _table(scenario: str, broker: str, figures: dict[str, list[float]]) -> str:
    medians = {name: median(values) for name, values in figures.items()}
    lines = [f"{scenario}, against {broker}", "", "| client | records/s | CPU s/M | peak MiB |"]
    lines.append("|---|---|---|---|")
    for client in one_client.WORK:
        if f"{client}: records/s" in medians:
            rate, cpu, peak = (
                medians[f"{client}: {figure}"] for figure in ("records/s", "CPU s/M", "peak MiB")
            )
            lines.append(f"| {client} | {rate:,.0f} | {cpu:.2f} | {peak:.0f} |")
    return "\n".join(lines)
