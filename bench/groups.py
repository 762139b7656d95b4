"""What groups cost: time to a stable group, a rebalance, heartbeats and commits.

    python bench/run.py --only groups --against kafka      beside Apache Kafka
    python bench/groups.py --bootstrap HOST:PORT --groups 100 --members 3

The second form puts one such load on a running broker and prints its figures as a JSON line.
Forming includes group.initial.rebalance.delay.ms, three seconds by default, on any broker.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

import group_load
import meter
import msgspec
from brokers import Broker, GivenBroker
from scenarios import Effort, Scenario, fresh_topic

HEARTBEAT_INTERVAL_S = 1.0
SPARE_FILES = 500
SHOWN = (
    "commits_per_s",
    "form_s",
    "rebalance_s",
    "rebalance_p99_us",
    "heartbeat_p99_us",
    "commit_p99_us",
    "cpu_us_per_heartbeat",
    "cpu_us_per_commit",
    "form_cpu_s",
    "rebalance_cpu_s",
    "resident_mib",
)


@dataclass(frozen=True, slots=True)
class GroupsLoad:
    """How many groups of how many members, and for how long they beat and commit."""

    groups: int
    members: int
    seconds: float


def many_groups(broker: Broker, effort: Effort, *, groups: int, members: int) -> meter.Figures:
    """All groups form at once, beat, commit, lose a member each, and end."""
    warm_up(broker, effort)
    load = GroupsLoad(max(1, int(groups * effort.scale)), members, effort.seconds)
    return measure(broker, load)


def one_group(broker: Broker, effort: Effort, *, members: int) -> meter.Figures:
    """The same with one large group."""
    warm_up(broker, effort)
    return measure(broker, GroupsLoad(1, max(2, int(members * effort.scale)), effort.seconds))


def warm_up(broker: Broker, effort: Effort) -> None:
    """Some groups that are not counted, so that a JVM has compiled what it will run."""
    measure(broker, GroupsLoad(50, 3, effort.seconds))


def measure(broker: Broker, load: GroupsLoad) -> meter.Figures:
    """Every part of the load, each metered on its own."""
    allow_files(load.groups * load.members + SPARE_FILES)
    with fresh_topic(broker, load.members) as topic:
        return asyncio.run(_measure(broker, load, topic))


async def _measure(broker: Broker, load: GroupsLoad, topic: str) -> meter.Figures:
    swarm = group_load.Swarm(broker.bootstrap, load.groups, load.members)
    whole = meter.Meter(broker.pid)
    try:
        await swarm.connect()
        forms, formed = await _metered(broker, swarm.form())
        beats, beaten = await _metered(broker, swarm.heartbeat(load.seconds, HEARTBEAT_INTERVAL_S))
        commits, committed = await _metered(broker, swarm.commit(topic, load.seconds))
        rebalances, rebalanced = await _metered(broker, swarm.rebalance())
        await swarm.end()
    finally:
        swarm.close()
    figures = {
        "groups": float(load.groups),
        "members": float(load.groups * load.members),
        "form_s": max(forms),
        "rebalance_s": max(rebalances),
        "rebalances": float(len(rebalances)),
        "heartbeats": float(len(beats)),
        "commits": float(len(commits)),
        "commits_per_s": len(commits) / committed["wall_s"],
        **meter.percentiles_us(rebalances, "rebalance"),
        **meter.percentiles_us(beats, "heartbeat"),
        **meter.percentiles_us(commits, "commit"),
    }
    if broker.pid:
        figures["form_cpu_s"] = formed["broker_cpu_s"]
        figures["rebalance_cpu_s"] = rebalanced["broker_cpu_s"]
        figures["cpu_us_per_heartbeat"] = beaten["broker_cpu_s"] / len(beats) * 1e6
        figures["cpu_us_per_commit"] = committed["broker_cpu_s"] / len(commits) * 1e6
    return whole.stop() | figures


async def _metered(
    broker: Broker, work: Awaitable[list[float]]
) -> tuple[list[float], meter.Figures]:
    section = meter.Meter(broker.pid)
    found = await work
    return found, section.stop()


def allow_files(count: int) -> None:
    """Raise this process's limit of open files as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def scenarios() -> list[Scenario]:
    """The measurements of groups; what they are compared with has no bar yet."""
    many = partial(many_groups, groups=1000, members=3)
    large = partial(one_group, members=500)
    return [
        Scenario("groups", "1,000 groups of 3 members", many, (), SHOWN),
        Scenario("groups", "one group of 500 members", large, (), SHOWN),
    ]


def main(arguments: list[str]) -> int:
    """One load on a running broker."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--pid", type=int, help="the process of the broker, for its CPU")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args(arguments)
    broker = GivenBroker(options.bootstrap, options.bootstrap, options.pid)
    load = GroupsLoad(options.groups, options.members, options.seconds)
    print(msgspec.json.encode(measure(broker, load)).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
