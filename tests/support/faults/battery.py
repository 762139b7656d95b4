"""All faults by name, and how each is run and judged."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from ottla import Admin
from ottla.clients.topics import NewTopic
from ottla.testing.cluster import FAST_SETTINGS, Cluster, Shape
from support.faults import bank, clocks, disks, elections, moves, recreation, scenarios
from support.faults.bank import Bank, Branch
from support.faults.bank_judge import judge_bank
from support.faults.judge import Verdict, judge
from support.faults.load import CAREFUL, FORGETFUL, HASTY, Load
from support.faults.stage import Fault, Stage
from transactions.bank import PARTITIONS as BANK_PARTITIONS

PARTITIONS = 3
SHORT_LAG = {"replica.lag.time.max.ms": "1500"}
LONG_LAG = {"replica.lag.time.max.ms": "30000"}
BANK_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


@dataclass(frozen=True, slots=True)
class BankFault:
    """What is done while money is moved in transactions."""

    do: Callable[[Branch], None]


FAULTS: dict[str, Fault | BankFault] = {
    "kill -9 of a leader": Fault(scenarios.kill_leader),
    "kill -9 of a follower, twice": Fault(scenarios.kill_follower),
    "kill -9 of the controller": Fault(scenarios.kill_controller),
    "kill -9 of all at once, started in another order": Fault(scenarios.kill_all),
    "kill -9 of two leaders in turn": Fault(scenarios.kill_leaders_in_turn),
    "SIGSTOP of a leader past its session": Fault(scenarios.pause_leader),
    "SIGSTOP of the controller past its session": Fault(scenarios.pause_controller),
    "rolling restart": Fault(scenarios.restart_one_by_one),
    "ZooKeeper killed until all sessions are over": Fault(scenarios.kill_zookeeper),
    "ZooKeeper killed and started": Fault(scenarios.kill_zookeeper_for_a_moment),
    "ZooKeeper's leader killed, of three": Fault(scenarios.kill_zookeepers_leader, zookeepers=3),
    "ZooKeeper without quorum until all sessions are over": Fault(
        scenarios.lose_quorum, zookeepers=3
    ),
    "ZooKeeper without quorum for a minute": Fault(
        scenarios.lose_quorum_for_a_minute, zookeepers=3
    ),
    "leader cut from ZooKeeper": Fault(scenarios.cut_leader_from_zookeeper),
    "leader cut from the other brokers for 5 s": Fault(scenarios.cut_leader_for_5_seconds),
    "leader cut from the other brokers for 25 s": Fault(scenarios.cut_leader_for_25_seconds),
    "leader cut from the other brokers for 60 s": Fault(scenarios.cut_leader_for_60_seconds),
    "all brokers cut from each other until one is alone in sync": Fault(
        scenarios.starve_leader, settings=SHORT_LAG
    ),
    "leader cut from one follower": Fault(scenarios.cut_one_follower, settings=SHORT_LAG),
    "leader cut from all but its clients": Fault(scenarios.cut_leader_from_all_but_clients),
    "leader's packets lost, others' arrive": Fault(scenarios.silence_leader),
    "leader's packets arrive, others' are lost": Fault(scenarios.deafen_leader),
    "leader cut from everybody": Fault(scenarios.isolate_leader),
    "failover to another and back, with acks=1 besides": Fault(
        elections.fail_over_and_back,
        settings=LONG_LAG,
        replicas=(0, 1, 2),
        manners=(*CAREFUL, HASTY),
    ),
    "kill -9 of the last in sync, no unclean election": Fault(
        elections.lose_the_last_in_sync,
        topic_configs={"min.insync.replicas": "1"},
        replicas=(0, 1, 2),
    ),
    "kill -9 of the last in sync, unclean election": Fault(
        elections.elect_one_out_of_sync,
        topic_configs={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
        replicas=(0, 1, 2),
        manners=FORGETFUL,
        may_lose=True,
    ),
    "moved to one replica and back to three, leaders killed": Fault(
        moves.move_to_one_and_back_to_three, brokers=4, replicas=(0, 1, 2)
    ),
    "a move called off after its leader was killed": Fault(
        moves.cancel_a_move, brokers=4, replicas=(0, 1, 2)
    ),
    "disk of a leader full": Fault(disks.fill_leaders_disk, replicas=(0, 1, 2), small_disk_of=0),
    "disk of a follower full": Fault(
        disks.fill_followers_disk, replicas=(1, 2, 0), small_disk_of=0
    ),
    "topic deleted and created while a replica is away": Fault(
        recreation.recreate_without_a_replica
    ),
    "clocks of brokers an hour apart": Fault(clocks.set_clocks_apart, settings=BANK_SETTINGS),
    "transactions: kill -9 of a coordinator": BankFault(bank.kill_coordinator),
    "transactions: kill -9 of a leader": BankFault(bank.kill_leader),
    "transactions: SIGSTOP of a producer past its time-out": BankFault(bank.pause_writer),
    "transactions: SIGSTOP of a producer, another takes its id": BankFault(bank.displace_writer),
}


@contextmanager
def a_cluster_for(fault: Fault | BankFault) -> Iterator[Cluster]:
    """A running cluster of the kind that the fault is about."""
    if isinstance(fault, BankFault):
        with Cluster(settings=BANK_SETTINGS) as cluster:
            yield cluster
        return
    shape = Shape(
        brokers=fault.brokers,
        zookeepers=fault.zookeepers,
        settings={**FAST_SETTINGS, **fault.settings},
    )
    with ExitStack() as resources:
        data: Path | None = None
        if fault.small_disk_of is not None:
            data = Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
            resources.callback(shutil.rmtree, data, ignore_errors=True)
            resources.enter_context(disks.small_disk(data / f"broker-{fault.small_disk_of}"))
        yield resources.enter_context(Cluster.of(shape, data))


def run_fault(
    cluster: Cluster, fault: Fault | BankFault, topic: str, folder: Path, *, seed: int = 0
) -> Verdict:
    """Puts load on a topic of its own, does what is to be done, and judges what became of it."""
    if isinstance(fault, BankFault):
        return _run_bank(cluster, fault, topic, folder, seed)
    assignments = dict.fromkeys(range(PARTITIONS), fault.replicas) if fault.replicas else {}
    _create(cluster, NewTopic(topic, PARTITIONS, 3, fault.topic_configs, assignments))
    with Load(cluster, topic, PARTITIONS, folder, fault.manners) as load:
        stage = Stage(cluster, load, Random(seed))
        stage.go_on()
        fault.do(stage)
        load.healed()
        stage.go_on()
        return judge(replace(load.finish(), may_lose=fault.may_lose))


def _run_bank(cluster: Cluster, fault: BankFault, topic: str, folder: Path, seed: int) -> Verdict:
    _create(cluster, NewTopic(topic, BANK_PARTITIONS, 3))
    with Bank(cluster, topic, folder) as opened:
        opened.wait_progress()
        fault.do(Branch(cluster, opened, Random(seed)))
        opened.healed()
        opened.wait_progress()
        return judge_bank(opened.finish())


def _create(cluster: Cluster, new: NewTopic) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        (created,) = admin.create_topics(new)
    assert created.error is None, created.error
    cluster.wait_until_in_sync()
