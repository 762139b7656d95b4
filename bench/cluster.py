"""What is measured of a cluster: replicated writes, their latency, many partitions, failover.

Every group has a cluster of its own, made afresh, and alone on the machine. CPU and memory are
those of all its processes together, ZooKeeper among them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import client_load
import cluster_load
import meter
import raw_load
import wire
from brokers import NotPossible
from cluster_brokers import (
    SESSION_TIMEOUT_MS,
    SIZE,
    KafkaCluster,
    OttlaCluster,
    RunningCluster,
    bootstrap_of,
    running,
    wait_answering,
)
from scenarios import SMALL, AtMost, Effort, Scenario, Times

GROUP = "cluster"
LOADED = "cluster-load"
"""The one group whose measurements are repeated."""
TURNS_MAX = 2
"""Each turn starts both clusters anew."""
PARTITIONS = 6
FAILOVER_SECONDS_MAX = SESSION_TIMEOUT_MS / 1000 + 2
SETTLE_SECONDS = 5.0
KAFKA_PARTITIONS_MAX = 1_000
"""Ten thousand in three JVMs on a small machine take longer than all the rest."""


def produce(cluster: RunningCluster, effort: Effort, *, value_bytes: int) -> meter.Figures:
    """confluent-kafka with its defaults, which wait for all replicas in sync."""
    topic = cluster_load.create_topic(cluster, PARTITIONS)
    records = int((300_000 if value_bytes >= 1000 else 1_000_000) * effort.scale)
    load = client_load.ClientLoad(topic, PARTITIONS, records, value_bytes)
    return client_load.confluent_produce(bootstrap_of(cluster), cluster.pids, load)


def _warm_up(cluster: RunningCluster) -> None:
    """As much as will be measured, so that a JVM has compiled what it will run."""
    for value_bytes in (1000, 100):
        produce(cluster, Effort(), value_bytes=value_bytes)


def latency(cluster: RunningCluster, effort: Effort, *, per_second: int) -> meter.Figures:
    """A record to one partition at a fixed rate, until all replicas in sync have it."""
    topic = cluster_load.create_topic(cluster, 1)
    with wire.Connection(cluster.addresses[0]) as connection:
        leader = cluster_load.layout(connection, topic).leaders[0]
    load = raw_load.LatencyLoad(topic, SMALL, per_second, seconds=effort.seconds)
    return raw_load.produce_latency(cluster.addresses[leader], cluster.pids, load)


def many_partitions(cluster: RunningCluster, effort: Effort, *, partitions: int) -> meter.Figures:
    """Make them, look at them, rest, stop and start a broker, then kill one and the controller."""
    if partitions > KAFKA_PARTITIONS_MAX and cluster.name == KafkaCluster.name:
        raise NotPossible("left out: it would take longer than all the rest")
    began = time.perf_counter()
    topic = cluster_load.create_topic(cluster, partitions)
    writes = cluster_load.Writes(cluster, topic, partitions, asked=0)
    figures = {"create_s": writes.seconds_until_all(began)}
    cluster_load.wait_in_sync(cluster, topic, SIZE)
    figures |= _metadata(cluster, topic) | _rest(cluster, effort)
    controller = cluster.controller()
    victim, other = [each for each in range(SIZE) if each != controller]
    figures |= _restart(cluster, topic, victim, asked=other)
    figures["failover_s"] = _failover(cluster, topic, victim, asked=other)
    cluster.start_again(victim)
    wait_answering(cluster, range(SIZE), SIZE)
    cluster_load.wait_in_sync(cluster, topic, SIZE, number=other)
    controller = cluster.controller()
    survivor = next(each for each in range(SIZE) if each != controller)
    figures["controller_failover_s"] = _failover(cluster, topic, controller, asked=survivor)
    return figures


def _metadata(cluster: RunningCluster, topic: str) -> meter.Figures:
    """The time of a full answer, best of some."""
    times = []
    with wire.Connection(cluster.addresses[0]) as connection:
        for _ in range(5):
            began = time.perf_counter()
            cluster_load.layout(connection, topic)
            times.append(time.perf_counter() - began)
    return {"metadata_ms": min(times) * 1000}


def _rest(cluster: RunningCluster, effort: Effort) -> meter.Figures:
    time.sleep(SETTLE_SECONDS)
    metered = meter.Meter(cluster.pids)
    time.sleep(max(effort.seconds, 3.0))
    resting = metered.stop()
    return {
        "idle_cpu_percent": resting["broker_cpu_s"] / resting["wall_s"] * 100,
        "idle_mib": resting["resident_mib"],
        "broker_mib": meter.resident_mib(cluster.broker_pid(0)),
        "other_share": resting["other_share"],
    }


def _restart(cluster: RunningCluster, topic: str, number: int, *, asked: int) -> meter.Figures:
    """A clean stop and start: until it answers, and until it is in sync everywhere again."""
    began = time.perf_counter()
    cluster.stop(number)
    stopped = time.perf_counter()
    cluster.start_again(number)
    wait_answering(cluster, [number], SIZE)
    started = time.perf_counter()
    cluster_load.wait_in_sync(cluster, topic, SIZE, number=asked)
    return {
        "broker_stop_s": stopped - began,
        "broker_start_s": started - stopped,
        "broker_back_in_sync_s": time.perf_counter() - stopped,
    }


def _failover(cluster: RunningCluster, topic: str, victim: int, *, asked: int) -> float:
    """From kill -9 until every partition has acknowledged a write again."""
    cluster_load.balance_leaders(cluster, topic, asked)
    with wire.Connection(cluster.addresses[asked]) as connection:
        leaders = cluster_load.layout(connection, topic).leaders
    writes = cluster_load.Writes(cluster, topic, len(leaders), asked=asked)
    began = time.perf_counter()
    cluster.kill(victim)
    return writes.seconds_until_all(began)


def scenarios() -> Iterator[Scenario]:
    """All of them; those of one group run on the same cluster."""
    faster = (Times("records_per_s", at_least=1.0),)
    for value_bytes in (1000, 100):
        name = f"replicated produce, {value_bytes} B records, {PARTITIONS} partitions"
        run = partial(produce, value_bytes=value_bytes)
        yield Scenario(LOADED, name, run, faster, ("mb_per_s", "cpu_s_per_gb"))
    yield Scenario(
        LOADED,
        "replicated produce latency, 200 B at 500/s",
        partial(latency, per_second=500),
        (Times("produce_p99_us", at_most=1.0),),
        ("produce_p50_us",),
    )
    bars = (
        AtMost("failover_s", FAILOVER_SECONDS_MAX),
        AtMost("controller_failover_s", FAILOVER_SECONDS_MAX),
    )
    shown: tuple[str, ...] = (
        "create_s",
        "metadata_ms",
        "idle_cpu_percent",
        "idle_mib",
        "broker_mib",
    )
    shown += ("broker_stop_s", "broker_start_s", "broker_back_in_sync_s")
    for partitions in (1_000, 10_000):
        name = f"{partitions:,} partitions with three replicas"
        run = partial(many_partitions, partitions=partitions)
        yield Scenario(f"{GROUP}-{partitions}", name, run, bars, shown)


def is_clustered(scenario: Scenario) -> bool:
    """Whether it is measured on a cluster of its own."""
    return scenario.group.startswith(f"{GROUP}-")


def turns(
    chosen: list[Scenario], folder: Path, *, beside_kafka: bool, repeat: int
) -> Iterator[tuple[RunningCluster, list[Scenario]]]:
    """Clusters, one after another, each with what is to be measured on it while it runs."""
    kinds: list[Callable[[Path], OttlaCluster | KafkaCluster]] = [OttlaCluster]
    if beside_kafka:
        if not KafkaCluster.is_available():
            raise SystemExit("Apache Kafka cannot be started: see bench/cluster_brokers.py")
        kinds.append(KafkaCluster)
    for group in dict.fromkeys(one.group for one in chosen):
        own = [one for one in chosen if one.group == group]
        for _ in range(min(repeat, TURNS_MAX) if group == LOADED else 1):
            for kind in kinds:
                with running(kind, folder) as cluster:
                    print(f"{cluster.name}: a cluster of {SIZE} runs", flush=True)
                    if group == LOADED:
                        _warm_up(cluster)
                    yield cluster, own
