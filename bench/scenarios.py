"""What is measured: each scenario puts one load on one running broker and returns figures.

A scenario carries the bars it is judged by. `Times` bars compare Ottla with the other broker in the
same run; `AtMost` and `AtLeast` bars hold for Ottla alone.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import client_load
import meter
import raw_load
import wire
from brokers import Broker, NotPossible

MEGABYTE = 1_000_000
CHUNK_BATCHES = 64
GROWTH_TURNS = 3


@dataclass(frozen=True, slots=True)
class Effort:
    """How long and how large the loads are."""

    seconds: float = 5.0
    scale: float = 1.0
    memory_records: int = 10_000_000
    growth_bytes: int = 10_000 * MEGABYTE
    partitions: int = 2000


@dataclass(frozen=True, slots=True)
class Times:
    """The figure, as a ratio to the other broker's, is at least or at most this."""

    figure: str
    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, ratio: float) -> bool:
        above = self.at_least is None or ratio >= self.at_least
        return above and (self.at_most is None or ratio <= self.at_most)


@dataclass(frozen=True, slots=True)
class AtMost:
    """The figure itself is at most this."""

    figure: str
    limit: float

    def is_met(self, value: float) -> bool:
        return value <= self.limit


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The figure itself is at least this."""

    figure: str
    limit: float

    def is_met(self, value: float) -> bool:
        return value >= self.limit


@dataclass(frozen=True, slots=True)
class Scenario:
    """One measurement, the bars it must meet and what else of it is worth showing."""

    group: str
    name: str
    run: Callable[..., meter.Figures]
    """Is given the broker, or the cluster, and the effort."""
    bars: tuple[Times | AtMost | AtLeast, ...]
    shown: tuple[str, ...] = ()


@contextmanager
def fresh_topic(broker: Broker, partitions: int) -> Iterator[str]:
    """A new topic, deleted afterwards, and off the disk before anything else is measured."""
    topic = f"bench-{time.time_ns()}"
    with wire.Connection(broker.bootstrap) as connection:
        wire.create_topic(connection, topic, partitions)
    try:
        yield topic
    finally:
        with wire.Connection(broker.bootstrap) as connection:
            wire.delete_topic(connection, topic)
        broker.wait_removed()


SMALL = wire.record_batch(b"x" * 130, 1)
"""A Produce request around it is about 230 bytes on the wire, of which 200 are the batch."""

USUAL = wire.batch_of_size(16 * 1024, 100)
LARGE = wire.batch_of_size(MEGABYTE, 1000)


def start_up(broker: Broker, effort: Effort) -> meter.Figures:
    """A start on an existing data folder, to the first answered request; then memory at rest."""
    broker.stop()
    figures = _start(broker)
    time.sleep(effort.seconds)
    metered = meter.Meter(broker.pid)
    time.sleep(effort.seconds)
    resting = metered.stop()
    figures["idle_cpu_percent"] = resting["broker_cpu_s"] / resting["wall_s"] * 100
    figures["idle_mib"] = resting["resident_mib"]
    return figures


def _start(broker: Broker) -> meter.Figures:
    """Start it; all CPU of the new process was used in this section, and is not disturbance."""
    metered = meter.Meter(None)
    first_answer_s = broker.start()
    section = metered.stop()
    assert broker.pid is not None
    own_share = meter.cpu_seconds(broker.pid) / section["wall_s"] / meter.PROCESSORS
    other_share = max(0.0, section["other_share"] - own_share)
    return {"first_answer_s": first_answer_s, "other_share": other_share}


def client_produce(
    broker: Broker, effort: Effort, *, value_bytes: int, partitions: int
) -> meter.Figures:
    """confluent-kafka produces with its default batching."""
    with fresh_topic(broker, partitions) as topic:
        load = _client_load(topic, effort, value_bytes, partitions)
        return client_load.confluent_produce(broker.bootstrap, broker.pid, load)


def client_fetch(
    broker: Broker, effort: Effort, *, value_bytes: int, partitions: int
) -> meter.Figures:
    """confluent-kafka reads what confluent-kafka wrote."""
    with fresh_topic(broker, partitions) as topic:
        load = _client_load(topic, effort, value_bytes, partitions)
        client_load.confluent_produce(broker.bootstrap, None, load)
        return client_load.confluent_consume(broker.bootstrap, broker.pid, load)


def java_produce(
    broker: Broker, effort: Effort, *, value_bytes: int, partitions: int
) -> meter.Figures:
    """Java's producer with its default 16 KB batches."""
    with fresh_topic(broker, partitions) as topic:
        load = _client_load(topic, effort, value_bytes, partitions)
        return client_load.java_produce(broker.bootstrap, broker.pid, load)


def java_fetch(
    broker: Broker, effort: Effort, *, value_bytes: int, partitions: int
) -> meter.Figures:
    """Java's consumer, in a group, reads what confluent-kafka wrote."""
    with wire.Connection(broker.bootstrap) as connection:
        if wire.JOIN_GROUP not in wire.offered_apis(connection):
            raise NotPossible("it has no consumer groups, which the tool needs")
    with fresh_topic(broker, partitions) as topic:
        load = _client_load(topic, effort, value_bytes, partitions)
        client_load.confluent_produce(broker.bootstrap, None, load)
        return client_load.java_consume(broker.bootstrap, broker.pid, load)


def _client_load(
    topic: str, effort: Effort, value_bytes: int, partitions: int
) -> client_load.ClientLoad:
    records = 1_000_000 if value_bytes >= 1000 else 3_000_000
    return client_load.ClientLoad(topic, partitions, int(records * effort.scale), value_bytes)


def raw_produce(
    broker: Broker, effort: Effort, *, batch: wire.Batch, connections: int
) -> meter.Figures:
    """Encoded Produce requests, pipelined."""
    with fresh_topic(broker, connections) as topic:
        load = raw_load.ProduceLoad(topic, batch, connections=connections, seconds=effort.seconds)
        return raw_load.produce(broker.bootstrap, broker.pid, load)


def raw_fetch(broker: Broker, effort: Effort, *, batch: wire.Batch) -> meter.Figures:
    """Chunks of about one megabyte, one after the other, from the page cache."""
    with fresh_topic(broker, 1) as topic:
        stored = int(500 * MEGABYTE * max(0.2, effort.scale))
        batches = raw_load.fill(broker.bootstrap, topic, batch, stored)
        per_chunk = max(1, MEGABYTE // len(batch.data))
        starts = list(range(0, batches - per_chunk, per_chunk))
        load = raw_load.FetchLoad(topic, batch, per_chunk, starts, effort.seconds)
        return raw_load.fetch(broker.bootstrap, broker.pid, load)


def produce_latency(
    broker: Broker, effort: Effort, *, batch: wire.Batch, per_second: int
) -> meter.Figures:
    """Request to answer, one at a time."""
    with fresh_topic(broker, 1) as topic:
        load = raw_load.LatencyLoad(topic, batch, per_second, seconds=effort.seconds)
        return raw_load.produce_latency(broker.bootstrap, broker.pid, load)


def delivery_latency(
    broker: Broker, effort: Effort, *, batch: wire.Batch, per_second: int
) -> meter.Figures:
    """Produce to the waiting consumer, one at a time."""
    with fresh_topic(broker, 1) as topic:
        load = raw_load.LatencyLoad(topic, batch, per_second, seconds=effort.seconds)
        return raw_load.delivery_latency(broker.bootstrap, broker.pid, load)


def memory(broker: Broker, effort: Effort) -> meter.Figures:
    """Memory over a run of many records: after a tenth, at the end, and after reading all."""
    assert broker.pid is not None, "memory is read by the broker's pid"
    figures = {"resident_before_mib": meter.resident_mib(broker.pid)}
    metered = meter.Meter(broker.pid)
    with fresh_topic(broker, 1) as topic:
        tenth_bytes = effort.memory_records // 10 // USUAL.records * len(USUAL.data)
        batches = 0
        for part in range(10):
            batches += raw_load.fill(broker.bootstrap, topic, USUAL, tenth_bytes)
            if part == 0:
                figures["resident_first_tenth_mib"] = meter.resident_mib(broker.pid)
        starts = list(range(0, batches - CHUNK_BATCHES, CHUNK_BATCHES))
        load = raw_load.FetchLoad(topic, USUAL, CHUNK_BATCHES, starts, effort.seconds)
        raw_load.fetch(broker.bootstrap, broker.pid, load)
    figures["records"] = batches * USUAL.records
    figures["resident_end_mib"] = meter.resident_mib(broker.pid)
    figures["resident_peak_mib"] = meter.resident_peak_mib(broker.pid)
    figures["other_share"] = metered.stop()["other_share"]
    figures["growth"] = figures["resident_end_mib"] / figures["resident_first_tenth_mib"]
    return figures


def growth(broker: Broker, effort: Effort) -> meter.Figures:
    """What an append and a fetch cost with little and with much stored, measured in turns."""
    costs: dict[str, list[float]] = defaultdict(list)
    with fresh_topic(broker, 1) as small, fresh_topic(broker, 1) as large:
        stored = {
            small: raw_load.fill(broker.bootstrap, small, USUAL, 100 * MEGABYTE),
            large: raw_load.fill(broker.bootstrap, large, USUAL, effort.growth_bytes),
        }
        _append_and_fetch_us(broker, small, stored[small], effort)
        metered = meter.Meter(broker.pid)
        for _ in range(GROWTH_TURNS):
            for size, topic in (("small", small), ("large", large)):
                append_us, fetch_us = _append_and_fetch_us(broker, topic, stored[topic], effort)
                costs[f"append_{size}_us"].append(append_us)
                costs[f"fetch_{size}_us"].append(fetch_us)
        other_share = metered.stop()["other_share"]
    figures = {name: statistics.median(values) for name, values in costs.items()}
    figures["other_share"] = other_share
    figures["stored_gb"] = stored[large] * len(USUAL.data) / 1e9
    figures["append_growth"] = figures["append_large_us"] / figures["append_small_us"]
    figures["fetch_growth"] = figures["fetch_large_us"] / figures["fetch_small_us"]
    return figures


def _append_and_fetch_us(
    broker: Broker, topic: str, batches: int, effort: Effort
) -> tuple[float, float]:
    """Broker CPU a small append and a fetch of a chunk anywhere in the first `batches`."""
    starts = list(range(0, batches - CHUNK_BATCHES, CHUNK_BATCHES))
    random.Random(1).shuffle(starts)
    reads = raw_load.FetchLoad(topic, USUAL, CHUNK_BATCHES, starts, effort.seconds)
    fetched = raw_load.fetch(broker.bootstrap, broker.pid, reads)
    writes = raw_load.ProduceLoad(topic, SMALL, seconds=effort.seconds)
    appended = raw_load.produce(broker.bootstrap, broker.pid, writes)
    return appended["cpu_us_per_request"], fetched["cpu_us_per_request"]


def many_partitions(broker: Broker, effort: Effort) -> meter.Figures:
    """A start after a clean stop, with many partitions that all hold something."""
    with fresh_topic(broker, effort.partitions) as topic:
        with wire.Connection(broker.bootstrap) as connection:
            for partition in range(effort.partitions):
                body = wire.produce_body(topic, partition, SMALL)
                wire.produced_offset(connection.request(wire.PRODUCE, body))
        stopping = time.perf_counter()
        broker.stop()
        stop_s = time.perf_counter() - stopping
        starting = time.perf_counter()
        figures = _start(broker) | {"stop_s": stop_s}
        with wire.Connection(broker.bootstrap) as connection:
            wire.wait_servable(connection, topic, effort.partitions)
            figures["all_usable_s"] = time.perf_counter() - starting
        assert broker.pid is not None
        figures["resident_mib"] = meter.resident_mib(broker.pid)
    return figures


def warm_up(broker: Broker) -> None:
    """A little of everything, so that a JVM has compiled what it will run, in quick runs too."""
    effort = Effort(seconds=3.0, scale=0.3)
    for batch in (SMALL, USUAL, LARGE):
        raw_produce(broker, effort, batch=batch, connections=1)
    raw_fetch(broker, effort, batch=USUAL)
    produce_latency(broker, effort, batch=SMALL, per_second=1000)
    client_fetch(broker, effort, value_bytes=1000, partitions=6)


def _client_scenarios() -> Iterator[Scenario]:
    throughput = ("mb_per_s", "cpu_s_per_million")
    bars = (Times("records_per_s", at_least=1.0), Times("cpu_s_per_gb", at_most=0.4))
    kinds = [("client-produce", "confluent-kafka produce", client_produce)]
    kinds += [("client-fetch", "confluent-kafka consume", client_fetch)]
    if client_load.has_java_tools():
        kinds += [("java-produce", "Java producer", java_produce)]
        kinds += [("java-fetch", "Java consumer", java_fetch)]
    for group, title, function in kinds:
        for value_bytes in (1000, 100):
            for partitions in (1, 6):
                name = f"{title}, {value_bytes} B records, {partitions} partition"
                name += "s" if partitions > 1 else ""
                run = partial(function, value_bytes=value_bytes, partitions=partitions)
                yield Scenario(group, name, run, bars, throughput)


def _raw_scenarios() -> Iterator[Scenario]:
    doubled = (Times("requests_per_s", at_least=2.0),)
    costs = ("mb_per_s", "cpu_us_per_request", "cpu_s_per_gb")
    for title, batch, bars in (
        ("200 B requests", SMALL, doubled),
        ("16 KB batches", USUAL, (*doubled, Times("mb_per_s", at_least=2.0))),
        ("1 MB batches", LARGE, ()),
    ):
        for connections in (1, 4):
            name = f"wire produce, {title}, {connections} connection"
            name += "s" if connections > 1 else ""
            run = partial(raw_produce, batch=batch, connections=connections)
            yield Scenario("produce", name, run, bars, costs)
    for title, batch in (("16 KB", USUAL), ("1 MB", LARGE)):
        run = partial(raw_fetch, batch=batch)
        bars = (Times("mb_per_s", at_least=1.3),)
        yield Scenario("fetch", f"wire fetch, 1 MB chunks of {title} batches", run, bars, costs)


def _latency_scenarios() -> Iterator[Scenario]:
    for title, batch, per_second in (("200 B", SMALL, 1000), ("16 KB", USUAL, 1000)):
        run = partial(produce_latency, batch=batch, per_second=per_second)
        name = f"produce latency, {title} at {per_second}/s"
        bars = (Times("produce_p99_us", at_most=0.5),)
        yield Scenario("latency", name, run, bars, ("produce_p50_us",))
    run = partial(delivery_latency, batch=SMALL, per_second=500)
    bars = (Times("delivery_p99_us", at_most=0.5),)
    name = "delivery to a waiting consumer, 200 B at 500/s"
    yield Scenario("latency", name, run, bars, ("delivery_p50_us",))


def scenarios() -> list[Scenario]:
    """All of them, in the order they are run: start-up while caches are cold, restarts last."""
    resting = (AtMost("first_answer_s", 0.5), AtMost("idle_mib", 60))
    flat = (AtMost("growth", 1.1),)
    even = (AtMost("append_growth", 1.1), AtMost("fetch_growth", 1.1))
    sizes = ("resident_first_tenth_mib", "resident_end_mib", "resident_peak_mib")
    costs = ("append_small_us", "append_large_us", "fetch_small_us", "fetch_large_us")
    starts = (AtMost("first_answer_s", 2.0), AtMost("all_usable_s", 2.0))
    return [
        Scenario("startup", "start-up and rest", start_up, resting, ("idle_cpu_percent",)),
        Scenario("memory", "memory over a ten-million-record run", memory, flat, sizes),
        *_client_scenarios(),
        *_raw_scenarios(),
        *_latency_scenarios(),
        Scenario("growth", "cost with much stored", growth, even, costs),
        Scenario("partitions", "start with many partitions", many_partitions, starts, ("stop_s",)),
    ]
