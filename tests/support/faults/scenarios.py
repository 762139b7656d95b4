"""What is done to a cluster under load; each ends with everything healed, and is judged then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ottla import Admin
from ottla.clients.topics import NewTopic
from ottla.testing.cluster import CLIENTS, ZOOKEEPER, Cluster
from support.faults.judge import Verdict, judge
from support.faults.load import Load

PARTITIONS = 3
RECORDS_BEFORE = 60
"""Acknowledged in every partition to every producer before and after something is done."""
OUTAGE_SECONDS = 1.5
"""Without any acknowledgement for so long, nobody serves."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster under load, and the chance to choose by."""

    cluster: Cluster
    load: Load
    random: Random

    @property
    def leader(self) -> int:
        return self.cluster.leader_of(self.load.topic, 0)

    def others(self, broker: int) -> list[int]:
        return [number for number in range(len(self.cluster.brokers)) if number != broker]

    def wait_other_leader(self, old: int) -> int:
        """Returns when somebody else leads the first partition."""

        def other() -> int | None:
            found = self.cluster.view.leader(self.load.topic, 0)
            return found if found not in (None, old) else None

        return self.cluster.view.wait(other, lambda: f"a leader that is not {old}")

    def wait_other_controller(self, old: int) -> int:
        def other() -> int | None:
            found = self.cluster.view.controller()
            return found if found not in (None, old) else None

        return self.cluster.view.wait(other, lambda: f"a controller that is not {old}")

    def go_on(self) -> None:
        self.load.wait_acknowledged(RECORDS_BEFORE)


def kill_leader(stage: Stage) -> None:
    leader = stage.leader
    stage.cluster.kill(leader)
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.start_brokers([leader])


def kill_follower(stage: Stage) -> None:
    follower = stage.random.choice(stage.others(stage.leader))
    stage.cluster.kill(follower)
    stage.cluster.start_brokers([follower])
    stage.go_on()
    stage.cluster.kill(follower)
    stage.go_on()
    stage.cluster.start_brokers([follower])


def kill_controller(stage: Stage) -> None:
    controller = stage.cluster.controller()
    stage.cluster.kill(controller)
    stage.wait_other_controller(controller)
    stage.go_on()
    stage.cluster.start_brokers([controller])


def kill_all(stage: Stage) -> None:
    order = list(range(len(stage.cluster.brokers)))
    stage.random.shuffle(order)
    for broker in order:
        stage.cluster.kill(broker)
    stage.random.shuffle(order)
    stage.cluster.start_brokers(order)


def kill_leaders_in_turn(stage: Stage) -> None:
    """Two fast failovers: from one to another and, with luck, back."""
    first = stage.leader
    stage.cluster.kill(first)
    second = stage.wait_other_leader(first)
    stage.cluster.start_brokers([first])
    stage.cluster.kill(second)
    stage.wait_other_leader(second)
    stage.cluster.start_brokers([second])


def pause_leader(stage: Stage) -> None:
    """Past its session: a zombie that believes to lead wakes up."""
    leader = stage.leader
    stage.cluster.pause(leader)
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.resume(leader)


def pause_controller(stage: Stage) -> None:
    controller = stage.cluster.controller()
    stage.cluster.pause(controller)
    stage.wait_other_controller(controller)
    stage.cluster.resume(controller)


def restart_one_by_one(stage: Stage) -> None:
    for broker in range(len(stage.cluster.brokers)):
        assert stage.cluster.stop(broker) == 0
        stage.go_on()
        stage.cluster.start_brokers([broker])
        stage.cluster.wait_until_in_sync()


def kill_zookeeper(stage: Stage) -> None:
    """Until every session is over, and nobody may lead any more."""
    stage.cluster.kill_zookeeper()
    stage.load.wait_outage(OUTAGE_SECONDS)
    stage.cluster.start_zookeeper()


def kill_zookeeper_for_a_moment(stage: Stage) -> None:
    stage.cluster.kill_zookeeper()
    stage.cluster.start_zookeeper()


def kill_zookeepers_leader(stage: Stage) -> None:
    servers = stage.cluster.zookeeper.servers
    leading = servers.index(stage.cluster.zookeeper.leader)
    stage.cluster.kill_zookeeper(leading)
    stage.go_on()
    stage.cluster.start_zookeeper(leading)


def lose_quorum(stage: Stage) -> None:
    for server in (0, 1):
        stage.cluster.kill_zookeeper(server)
    stage.load.wait_outage(OUTAGE_SECONDS)
    for server in (0, 1):
        stage.cluster.start_zookeeper(server)


def cut_leader_from_zookeeper(stage: Stage) -> None:
    leader = stage.leader
    stage.cluster.partition([[leader], [ZOOKEEPER]])
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.heal()


def cut_leader_from_brokers(stage: Stage) -> None:
    """It stays registered and reaches its clients; its followers fall out of the set in sync."""
    leader = stage.leader
    stage.cluster.partition([[leader], stage.others(leader)])
    stage.load.wait_outage(OUTAGE_SECONDS, partition=0)
    stage.cluster.heal()


def cut_leader_from_all_but_clients(stage: Stage) -> None:
    leader = stage.leader
    stage.cluster.partition([[leader], [*stage.others(leader), ZOOKEEPER]])
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.heal()


def silence_leader(stage: Stage) -> None:
    """What it sends gets lost, what is sent to it arrives."""
    leader = stage.leader
    for other in (*stage.others(leader), ZOOKEEPER):
        stage.cluster.network.hold(leader, other)
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.heal()


def isolate_leader(stage: Stage) -> None:
    leader = stage.leader
    stage.cluster.partition([[leader], [*stage.others(leader), ZOOKEEPER, CLIENTS]])
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.heal()


FAULTS: dict[str, Callable[[Stage], None]] = {
    "kill -9 of a leader": kill_leader,
    "kill -9 of a follower, twice": kill_follower,
    "kill -9 of the controller": kill_controller,
    "kill -9 of all, started in another order": kill_all,
    "kill -9 of two leaders in turn": kill_leaders_in_turn,
    "SIGSTOP of a leader past its session": pause_leader,
    "SIGSTOP of the controller past its session": pause_controller,
    "rolling restart": restart_one_by_one,
    "ZooKeeper killed until all sessions are over": kill_zookeeper,
    "ZooKeeper killed and started": kill_zookeeper_for_a_moment,
    "ZooKeeper's leader killed, of three": kill_zookeepers_leader,
    "ZooKeeper without quorum until all sessions are over": lose_quorum,
    "leader cut from ZooKeeper": cut_leader_from_zookeeper,
    "leader cut from the other brokers": cut_leader_from_brokers,
    "leader cut from all but its clients": cut_leader_from_all_but_clients,
    "leader's packets lost, others' arrive": silence_leader,
    "leader cut from everybody": isolate_leader,
}

ZOOKEEPERS = {
    "ZooKeeper's leader killed, of three": 3,
    "ZooKeeper without quorum until all sessions are over": 3,
}


def a_cluster_for(fault: str) -> Cluster:
    """Three brokers, and as many ZooKeeper servers as the fault is about."""
    return Cluster(brokers=3, zookeepers=ZOOKEEPERS.get(fault, 1))


def run_fault(cluster: Cluster, name: str, topic: str, folder: Path, *, seed: int = 0) -> Verdict:
    """Puts load on a topic of its own, does what the name says, and judges what became of it."""
    with Admin(cluster.bootstrap_servers) as admin:
        (created,) = admin.create_topics(NewTopic(topic, PARTITIONS, 3))
    assert created.error is None, created.error
    cluster.wait_until_in_sync()
    with Load(cluster, topic, PARTITIONS, folder) as load:
        stage = Stage(cluster, load, Random(seed))
        stage.go_on()
        FAULTS[name](stage)
        load.healed()
        stage.go_on()
        return judge(load.finish())
