"""Load through real clients with their own defaults: confluent-kafka, and Kafka's Java perf tools.

With client and broker on the same machine the client is usually what limits throughput; then the
broker's CPU seconds are the figure to look at.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

import brokers
import meter
from confluent_kafka import Consumer, Producer, TopicPartition
from one_client import CONFLUENT_QUEUE

JAVA_TOOL = brokers.KAFKA_SCRIPTS / "kt"
FLUSH_SECONDS_MAX = 120
IDLE_SECONDS_MAX = 20


class ClientFailed(Exception):
    """The client did not do what was asked of it."""


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """So many records of one size through one topic."""

    topic: str
    partitions: int
    records: int
    value_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.records * self.value_bytes


def confluent_produce(bootstrap: str, pids: meter.Pids, load: ClientLoad) -> meter.Figures:
    """From the first `produce` to the last acknowledgement."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "error_cb": failures.append})
    producer.list_topics(load.topic, timeout=30)
    value, produce, topic = b"x" * load.value_bytes, producer.produce, load.topic
    metered = meter.Meter(pids)
    for _ in range(load.records):
        try:
            produce(topic, value)
        except BufferError:
            while len(producer) > 50_000:
                producer.poll(0.01)
            produce(topic, value)
    unsent = producer.flush(FLUSH_SECONDS_MAX)
    figures = metered.stop()
    if unsent or failures:
        raise ClientFailed(f"{unsent} records were not acknowledged: {failures[:3]}")
    return meter.with_rates(figures, records=load.records, requests=0, size_bytes=load.size_bytes)


def confluent_consume(bootstrap: str, pid: int | None, load: ClientLoad) -> meter.Figures:
    """From assigning the partitions to the last record; no group is joined."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "ottla-bench",
            "enable.auto.commit": False,
            **CONFLUENT_QUEUE,
        }
    )
    metered = meter.Meter(pid)
    consumer.assign([TopicPartition(load.topic, one, 0) for one in range(load.partitions)])
    seen = 0
    while seen < load.records:
        messages = consumer.consume(1000, IDLE_SECONDS_MAX)
        if not messages:
            raise ClientFailed(f"only {seen} of {load.records} records came")
        if error := messages[0].error() or messages[-1].error():
            raise ClientFailed(str(error))
        seen += len(messages)
    figures = metered.stop()
    consumer.close()
    return meter.with_rates(figures, records=load.records, requests=0, size_bytes=load.size_bytes)


def java_produce(bootstrap: str, pid: int | None, load: ClientLoad) -> meter.Figures:
    """Kafka's ProducerPerformance with its defaults; throughput is the tool's own figure."""
    options = ["--bootstrap-server", bootstrap, "--topic", load.topic, "--throughput", "-1"]
    options += ["--num-records", str(load.records), "--record-size", str(load.value_bytes)]
    metered = meter.Meter(pid)
    output = _java_tool("ProducerPerformance", options)
    figures = metered.stop()
    summary = re.findall(r"^(\d+) records sent, ([\d.]+) records/sec", output, re.MULTILINE)
    if not summary or int(summary[-1][0]) != load.records:
        raise ClientFailed(f"ProducerPerformance said: {output[-400:]}")
    figures["wall_s"] = load.records / float(summary[-1][1])
    return meter.with_rates(figures, records=load.records, requests=0, size_bytes=load.size_bytes)


def java_consume(bootstrap: str, pid: int | None, load: ClientLoad) -> meter.Figures:
    """Kafka's ConsumerPerformance, which joins a group; counted from the end of the join."""
    options = ["--bootstrap-server", bootstrap, "--topic", load.topic, "--hide-header"]
    options += ["--num-records", str(load.records), "--timeout", "20000"]
    metered = meter.Meter(pid)
    output = _java_tool("ConsumerPerformance", options)
    figures = metered.stop()
    # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
    rows = [line.split(", ") for line in output.splitlines() if line.count(", ") == 9]
    if not rows or int(rows[-1][4]) < load.records:
        raise ClientFailed(f"ConsumerPerformance said: {output[-400:]}")
    figures["wall_s"] = int(rows[-1][7]) / 1000
    return meter.with_rates(figures, records=load.records, requests=0, size_bytes=load.size_bytes)


def has_java_tools() -> bool:
    """Whether Kafka's own tools can be run here."""
    return JAVA_TOOL.exists() and brokers.ApacheKafka.is_available()


def _java_tool(name: str, options: list[str]) -> str:
    done = subprocess.run(
        [str(JAVA_TOOL), name, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env={**os.environ, "KT_OPTS": "-Xmx512M"},
    )
    if done.returncode:
        raise ClientFailed(f"{name} failed: {done.stdout[-400:]}")
    return done.stdout
