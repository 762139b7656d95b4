"""A real cluster on this machine: ZooKeeper, broker processes, and a network that can be broken.

    with Cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        ...
        cluster.kill(cluster.leader_of("orders", 0))

Brokers are numbered from 0 and have that number as their id. What clients, brokers and ZooKeeper
say to each other passes `cluster.network`, unless `can_partition` is false. All processes end with
the context; after a failure the directory with all logs stays, and the last lines are shown.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from ottla.testing import network_source
from ottla.testing.child import PROGRAM, ChildBroker
from ottla.testing.cluster_view import ClusterView
from ottla.testing.network import CLIENTS, ZOOKEEPER, Network, Node
from ottla.testing.zookeeper import Ensemble, ZooKeeper, ZooKeeperServer, free_ports

__all__ = ["CLIENTS", "ZOOKEEPER", "Cluster", "Shape"]

SESSION_TIMEOUT_MS: Final = 4_000
"""Short, so that a test need not wait long until a dead broker counts as dead."""
START_SECONDS_MAX: Final = 30.0
LAST_LINES_SHOWN: Final = 40
REPLICATION_FACTOR: Final = 3
FAST_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "200",
    "replica.lag.time.max.ms": "5000",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}
"""What a production cluster does slowly or largely on purpose and a test does not want."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a local cluster is made of."""

    brokers: int = 3
    zookeepers: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every broker."""
    ports: Sequence[int] = ()
    """Where brokers listen, one each; any free ones where none are given."""
    can_partition: bool = True
    syncs_zookeeper: bool = False
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    program: Sequence[str] = PROGRAM
    """What brokers run, at first; `cluster.brokers[n].program` can be changed."""
    is_own_session: bool = False
    """Whether Ctrl-C is only for whoever starts it, and then stops brokers before ZooKeeper."""

    def broker_settings(self) -> dict[str, str]:
        """With as many replicas of everything as there can be, and a majority of them in sync."""
        replicas = min(REPLICATION_FACTOR, self.brokers)
        in_sync = replicas // 2 + 1
        return {
            "default.replication.factor": str(replicas),
            "min.insync.replicas": str(in_sync),
            "offsets.topic.replication.factor": str(replicas),
            "transaction.state.log.replication.factor": str(replicas),
            "transaction.state.log.min.isr": str(in_sync),
            **self.settings,
        }


class Cluster:
    """ZooKeeper and brokers for the length of a test."""

    def __init__(
        self,
        *,
        brokers: int = 3,
        zookeepers: int = 1,
        settings: Mapping[str, str] | None = None,
        can_partition: bool = True,
    ) -> None:
        self._start_with(
            Shape(
                brokers=brokers,
                zookeepers=zookeepers,
                settings={**FAST_SETTINGS, **(settings or {})},
                can_partition=can_partition and network_source.is_available(),
            ),
            None,
        )

    @classmethod
    def of(cls, shape: Shape, data: Path | None = None) -> Cluster:
        """A cluster of another shape, or one whose data stays in a directory of the caller's."""
        cluster = cls.__new__(cls)
        cluster._start_with(shape, data)
        return cluster

    def _start_with(self, shape: Shape, data: Path | None) -> None:
        self._shape = shape
        self._is_own_directory = data is None
        self.data = data or Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
        self.zookeeper = ZooKeeper(
            servers=shape.zookeepers,
            data=self.data / "zookeeper",
            ensemble=Ensemble(
                syncs_to_disk=shape.syncs_zookeeper, is_own_session=shape.is_own_session
            ),
        )
        self.brokers: tuple[ChildBroker, ...] = ()
        self._addresses: tuple[str, ...] = ()
        self._network = Network() if shape.can_partition else None
        self.view = ClusterView(lambda: self.brokers)

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except Exception:
            print(self.last_words(), file=sys.stderr)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.last_words(), file=sys.stderr)
        self.close(keep_data=error is not None)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, running or not."""
        return ",".join(self._addresses)

    @property
    def network(self) -> Network:
        """What can be cut, held and delayed, between any two."""
        if self._network is None:
            raise RuntimeError(
                "this cluster's network cannot be disturbed: it was started without"
                " can_partition, or this system does not tell who opened a connection"
            )
        return self._network

    def start(self) -> None:
        """Starts everything; returns when every broker answers and knows all others."""
        try:
            self.zookeeper.start()
            if self._network is not None:
                self._network.start()
            self._make_brokers()
            self.start_brokers(range(len(self.brokers)))
            self._wait_empty(self.view.unknown, "brokers that know each other", START_SECONDS_MAX)
        except BaseException as error:
            self.close(keep_data=isinstance(error, Exception))
            raise

    def close(self, *, keep_data: bool = False) -> None:
        """Ends every process: brokers first, so that they can say goodbye."""
        try:
            for broker in self.brokers:
                broker.terminate()
            for broker in self.brokers:
                broker.stop()
        finally:
            self.zookeeper.stop()
            if self._network is not None:
                self._network.close()
        if self._is_own_directory and not keep_data:
            shutil.rmtree(self.data, ignore_errors=True)

    # --- faults

    def kill(self, broker: int) -> None:
        """kill -9."""
        self.brokers[broker].kill()

    def stop(self, broker: int) -> int:
        """SIGTERM: it hands over what it leads and ends; returns its exit code."""
        return self.brokers[broker].stop()

    def restart(self, broker: int) -> None:
        """Starts a broker again on the same data and address; stops it first where it runs."""
        self.stop(broker)
        self.start_brokers([broker])

    def start_brokers(self, numbers: Iterable[int]) -> None:
        """Starts these at once; returns when each takes connections."""
        chosen = tuple(numbers)
        for number in chosen:
            broker = self.brokers[number]
            broker.launch()
            if self._network is not None:
                self._network.know(number, broker.pid)
        for number in chosen:
            self.brokers[number].wait_ready()

    def pause(self, broker: int) -> None:
        """SIGSTOP: it does nothing, its connections open, until `resume`."""
        self.brokers[broker].pause()

    def resume(self, broker: int) -> None:
        self.brokers[broker].resume()

    def partition(self, groups: Sequence[Iterable[Node]], *, breaks: bool = False) -> None:
        """Lets nothing pass between groups: `partition([[0], [1, 2, ZOOKEEPER]])`.

        A group has numbers of brokers, ZOOKEEPER and CLIENTS; whoever stands in none reaches all.
        Packets get lost without a sign, or, where it `breaks`, connections break.
        """
        self.network.partition(groups, breaks=breaks)

    def heal(self) -> None:
        """Ends what `partition` and the switches of `network` did."""
        self.network.heal()

    def kill_zookeeper(self, server: int = 0) -> None:
        self.zookeeper.servers[server].kill()

    def start_zookeeper(self, server: int = 0) -> None:
        """Starts a server again; returns when it gives sessions, for which it needs a quorum."""
        self.zookeeper.start_server(self.zookeeper.servers[server])

    # --- what the cluster is like now

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The number of the broker that leads it now; waits until one does."""
        return self.view.wait(
            lambda: self.view.leader(topic, partition), lambda: f"a leader of {topic}-{partition}"
        )

    def controller(self) -> int:
        """The number of the controller; waits until there is one."""
        return self.view.wait(self.view.controller, lambda: "a controller")

    def wait_until_in_sync(self, timeout_seconds: float = 60.0) -> None:
        """Returns when all running brokers know the same, and every replica is in sync."""
        self._wait_empty(self.view.missing, "everything in sync", timeout_seconds)

    def _wait_empty(
        self, missing: Callable[[], list[str]], what: str, timeout_seconds: float
    ) -> None:
        last: list[str] = []

        def is_there() -> bool | None:
            last[:] = missing()
            return None if last else True

        self.view.wait(is_there, lambda: f"{what}: {last[:10]}", timeout_seconds)

    def last_words(self) -> str:
        """The end of everybody's log."""
        logs = [
            (f"broker {number}", broker.log_path) for number, broker in enumerate(self.brokers)
        ] + [(f"ZooKeeper {server.number}", server.log_path) for server in self.zookeeper.servers]
        parts = [f"cluster in {self.data}"]
        for name, path in logs:
            lines = path.read_text(errors="replace").splitlines() if path.exists() else []
            parts += [f"--- {name}: {path}", *lines[-LAST_LINES_SHOWN:]]
        return "\n".join(parts)

    # --- making them

    def _make_brokers(self) -> None:
        if self.brokers:
            return
        ports = tuple(self._shape.ports) or tuple(free_ports(self._shape.brokers))
        self._addresses = tuple(
            self._network.address_of(number, port) if self._network else f"127.0.0.1:{port}"
            for number, port in enumerate(ports)
        )
        self.brokers = tuple(self._broker(number, port) for number, port in enumerate(ports))

    def _broker(self, number: int, port: int) -> ChildBroker:
        servers = ",".join(self._zookeeper_address(number, each) for each in self.zookeeper.servers)
        timeout_ms = self._shape.session_timeout_ms
        broker = ChildBroker(
            data=self.data / f"broker-{number}",
            port=port,
            settings=self._shape.broker_settings(),
            is_own_session=self._shape.is_own_session,
            arguments=(
                f"--node-id={number}",
                f"--metadata=zookeeper://{servers}/ottla?session_timeout_ms={timeout_ms}",
                f"--advertise={self._addresses[number]}",
            ),
        )
        broker.program = self._shape.program
        return broker

    def _zookeeper_address(self, broker: int, server: ZooKeeperServer) -> str:
        if self._network is None:
            return server.host_and_port
        return self._network.address_of(ZOOKEEPER, server.port, caller=broker)
