"""The clusters that are measured: three Ottla brokers with a ZooKeeper, three Apache Kafka nodes.

Both have their defaults, except that three replicas are made, two must be in sync, and a broker
counts as dead after the same time. A cluster is made for one measurement and forgotten after it:
on a small machine the other one must not run meanwhile. Brokers are numbered from 0, which is also
their id. Apache Kafka's jars are those that `../shared/bench/run-kafka.sh` has fetched.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import wire
from brokers import KAFKA_SCRIPTS, START_SECONDS_MAX, BrokerFailed

from ottla.testing.cluster import Cluster, Shape
from ottla.testing.zookeeper import free_ports

SIZE = 3
SESSION_TIMEOUT_MS = 6_000
"""After so long without a sign of life a broker counts as dead, in both clusters."""
DESCRIBE_QUORUM = 55
SETTINGS = {"min.insync.replicas": "2", "default.replication.factor": "3"}


class RunningCluster(Protocol):
    """A cluster under measurement, running."""

    name: str
    addresses: tuple[str, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        """All processes that run, with whatever keeps the metadata."""
        ...

    def broker_pid(self, number: int) -> int: ...

    def controller(self) -> int:
        """The number of the broker that decides for the cluster now."""
        ...

    def kill(self, number: int) -> None:
        """kill -9."""
        ...

    def stop(self, number: int) -> None:
        """Let it stop as it should."""
        ...

    def start_again(self, number: int) -> None:
        """Begin to start one that was stopped or killed, on its data."""
        ...


def bootstrap_of(cluster: RunningCluster) -> str:
    """Every broker's address, with commas."""
    return ",".join(cluster.addresses)


class OttlaCluster:
    """Three brokers of this checkout, and one ZooKeeper."""

    name = "Ottla"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "ottla-cluster"
        ports = free_ports(SIZE)
        self.addresses = tuple(f"127.0.0.1:{port}" for port in ports)
        shape = Shape(
            brokers=SIZE,
            ports=ports,
            settings=SETTINGS,
            can_partition=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
        )
        self._folder.mkdir(parents=True)
        self._cluster = Cluster.of(shape, self._folder)

    @property
    def pids(self) -> tuple[int, ...]:
        brokers = [each.pid for each in self._cluster.brokers if each.is_running]
        servers = [each.pid for each in self._cluster.zookeeper.servers if each.is_running]
        return (*brokers, *servers)

    def broker_pid(self, number: int) -> int:
        return self._cluster.brokers[number].pid

    def controller(self) -> int:
        return self._cluster.controller()

    def start(self) -> None:
        self._cluster.start()

    def kill(self, number: int) -> None:
        self._cluster.kill(number)

    def stop(self, number: int) -> None:
        self._cluster.stop(number)

    def start_again(self, number: int) -> None:
        self._cluster.brokers[number].launch()

    def close(self) -> None:
        for number in range(SIZE):
            self._cluster.kill(number)
        self._cluster.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class KafkaCluster:
    """Three nodes, each broker and controller in one JVM, with a fixed quorum."""

    name = "Apache Kafka"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "kafka-cluster"
        ports = free_ports(2 * SIZE)
        self.addresses = tuple(f"127.0.0.1:{port}" for port in ports[:SIZE])
        self._controllers = tuple(f"127.0.0.1:{port}" for port in ports[SIZE:])
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * SIZE

    @staticmethod
    def is_available() -> bool:
        """Whether its jars were fetched, and there is a Java to run them."""
        if shutil.which("java") is None or not (KAFKA_SCRIPTS / "env.sh").exists():
            return False
        return subprocess.run(_bash('test -e "$LIBS/.complete"')).returncode == 0

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(each.pid for each in self._processes if each is not None)

    def broker_pid(self, number: int) -> int:
        process = self._processes[number]
        if process is None:
            raise BrokerFailed(f"node {number} does not run")
        return process.pid

    def controller(self) -> int:
        """Metadata names anybody; the leader of the quorum is the controller."""
        for number in range(SIZE):
            if self._processes[number] is not None:
                with wire.Connection(self.addresses[number]) as connection:
                    return _quorum_leader(connection)
        raise BrokerFailed("no node runs")

    def start(self) -> None:
        cluster_id = "b3R0bGEtYmVuY2gtMDAwMA"
        for number in range(SIZE):
            folder = self._folder / str(number)
            (folder / "logs").mkdir(parents=True)
            (folder / "server.properties").write_text(self._properties(number, folder))
            tool = 'java $LOG4J -cp "$LIBS/*" kafka.tools.StorageTool format -t "$1" -c "$2"'
            command = _bash(tool, cluster_id, str(folder / "server.properties"))
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise BrokerFailed(f"formatting failed: {done.stdout[-600:].decode()}")
        for number in range(SIZE):
            self.start_again(number)

    def start_again(self, number: int) -> None:
        folder = self._folder / str(number)
        run = (
            'exec java $HEAP $JVM_PERF $LOG4J -Dkafka.logs.dir="$1/logs" -Dkafka.root.level=INFO'
            ' -Dkafka.appender=Server -cp "$LIBS/*" kafka.Kafka "$1/server.properties"'
        )
        with open(folder / "logs" / "stdout.log", "ab") as log:
            self._processes[number] = subprocess.Popen(
                _bash(run, str(folder)), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self, number: int) -> None:
        process, self._processes[number] = self._processes[number], None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self, number: int) -> None:
        process, self._processes[number] = self._processes[number], None
        if process is not None:
            process.terminate()
            process.wait(60)

    def close(self) -> None:
        for number in range(SIZE):
            self.kill(number)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _properties(self, number: int, folder: Path) -> str:
        voters = ",".join(f"{each}@{address}" for each, address in enumerate(self._controllers))
        address, controller = self.addresses[number], self._controllers[number]
        lines = {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{address}",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(folder / "log"),
            "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            **SETTINGS,
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())


def _bash(program: str, *arguments: str) -> list[str]:
    """A shell program with the paths and options that the scripts beside the checkout use."""
    prelude = 'source "$0/env.sh"; LOG4J="-Dlog4j2.configurationFile=$ANCHOR/log4j2.xml"; '
    return ["bash", "-c", prelude + program, str(KAFKA_SCRIPTS), *arguments]


def _quorum_leader(connection: wire.Connection) -> int:
    """DescribeQuorum 0, which is a version with tagged fields, unlike all in `wire`."""
    topic = b"__cluster_metadata"
    body = bytes([2, len(topic) + 1]) + topic + b"\x02" + struct.pack(">i", 0) + bytes(3)
    head = struct.pack(">hhi", DESCRIBE_QUORUM, 0, 1) + wire.string(wire.CLIENT_ID) + b"\0"
    connection.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
    (size,) = struct.unpack(">i", connection.receive_exactly(4))
    answer = wire.Reader(connection.receive_exactly(size))
    answer.take("ib")
    if error := answer.number("h"):
        raise wire.BrokerAnswer(f"DescribeQuorum answered error {error}")
    answer.skip(2 + len(topic) + 1)
    _, error, leader = answer.take("ihi")
    if error:
        raise wire.BrokerAnswer(f"DescribeQuorum answered error {error}")
    return int(leader)


@contextmanager
def running(
    make: Callable[[Path], OttlaCluster | KafkaCluster], folder: Path
) -> Iterator[RunningCluster]:
    """A fresh cluster whose brokers all know each other; its processes and data go afterwards."""
    cluster = make(folder)
    try:
        cluster.start()
        wait_answering(cluster, range(SIZE), SIZE)
        yield cluster
    finally:
        cluster.close()


def wait_answering(cluster: RunningCluster, numbers: range | list[int], size: int) -> None:
    """Wait until each of these brokers knows of so many."""
    deadline = time.monotonic() + START_SECONDS_MAX
    for number in numbers:
        while True:
            try:
                with wire.Connection(cluster.addresses[number], timeout_s=5) as connection:
                    if wire.broker_count(connection) >= size:
                        break
            except (OSError, wire.BrokerAnswer):
                pass
            if time.monotonic() > deadline:
                raise BrokerFailed(f"{cluster.name}'s broker {number} does not answer")
            time.sleep(0.01)
