"""Processes that die or stop, and networks that break, under load.

Each ends with everything healed, and is judged then.
"""

from __future__ import annotations

import os
import signal
import time

from ottla.errors import ErrorCode
from ottla.testing.cluster import CLIENTS, ZOOKEEPER
from support.batches import batch
from support.faults.stage import OUTAGE_SECONDS, Stage
from support.requests import produce
from support.wire import Connection

PAST_SESSION_SECONDS = 6.0
"""Longer than a session, of four seconds: whoever hears nothing has given up leading by then."""
MINUTE_SECONDS = 60.0
HAND_OVER_SECONDS = 20.0
"""By then a leader that no follower reaches has handed over: the lag of five seconds, half of it
until the next look, and what a busy machine needs."""


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
    """At once, and back one after the other."""
    order = list(range(len(stage.cluster.brokers)))
    for broker in order:
        os.kill(stage.cluster.brokers[broker].pid, signal.SIGKILL)
    for broker in order:
        stage.cluster.kill(broker)
    stage.random.shuffle(order)
    for broker in order:
        stage.cluster.start_brokers([broker])


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
    """Until every session may be over; who asks for safety writes on all the same."""
    stage.cluster.kill_zookeeper()
    stage.wait_in_doubt()
    stage.go_on()
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
    stage.wait_in_doubt()
    stage.go_on()
    for server in (0, 1):
        stage.cluster.start_zookeeper(server)


def lose_quorum_for_a_minute(stage: Stage) -> None:
    """Writers that wait for all replicas go on all the while."""
    for server in (0, 1):
        stage.cluster.kill_zookeeper(server)
    stage.wait_in_doubt()
    until = time.monotonic() + MINUTE_SECONDS
    while time.monotonic() < until:
        stage.go_on()
    for server in (0, 1):
        stage.cluster.start_zookeeper(server)


def cut_leader_from_zookeeper(stage: Stage) -> None:
    leader = stage.leader
    stage.cluster.partition([[leader], [ZOOKEEPER]])
    stage.wait_other_leader(leader)
    stage.go_on()
    stage.cluster.heal()


def cut_leader_from_brokers(stage: Stage, seconds: float) -> None:
    """It stays registered and reaches its clients. Who waits for all replicas goes on with another
    leader, once nobody has asked the old one for as long as replicas may lag."""
    leader = stage.leader
    stage.cluster.partition([[leader], stage.others(leader)])
    ends = time.monotonic() + seconds
    stage.load.wait_outage(OUTAGE_SECONDS, partition=0)
    if seconds > HAND_OVER_SECONDS:
        stage.wait_other_leader(leader)
        stage.go_on()
    while time.monotonic() < ends:
        time.sleep(0.1)
    stage.cluster.heal()


def cut_leader_for_5_seconds(stage: Stage) -> None:
    cut_leader_from_brokers(stage, 5.0)


def cut_leader_for_25_seconds(stage: Stage) -> None:
    cut_leader_from_brokers(stage, 25.0)


def cut_leader_for_60_seconds(stage: Stage) -> None:
    cut_leader_from_brokers(stage, 60.0)


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


def starve_leader(stage: Stage) -> None:
    """No broker reaches another: the last in sync must refuse what nobody else would have."""
    stage.cluster.partition([[broker] for broker in range(len(stage.cluster.brokers))])
    stage.wait_rows(lambda rows: rows[0].in_sync == (rows[0].leader,), "a leader alone in sync")
    leader = stage.rows()[0].leader
    with Connection(stage.cluster.brokers[leader].bootstrap_servers) as connection:
        place = (stage.load.topic, 0)
        answer = produce(connection, {place: batch([b"refused 0"])})[place]
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS, answer
    stage.cluster.heal()


def deafen_leader(stage: Stage) -> None:
    """What it sends arrives, so its session lives; it hears of nothing and must not answer."""
    leader = stage.leader
    for other in (*stage.others(leader), ZOOKEEPER):
        stage.cluster.network.hold(other, leader)
    stage.load.wait_outage(PAST_SESSION_SECONDS, partition=0)
    stage.cluster.heal()


def cut_one_follower(stage: Stage) -> None:
    """The third reaches both sides, and so do ZooKeeper and the clients."""
    leader = stage.leader
    follower = stage.random.choice(stage.others(leader))
    stage.cluster.partition([[leader], [follower]])
    stage.wait_rows(lambda rows: follower not in rows[0].in_sync, "a follower out of sync")
    stage.go_on()
    stage.cluster.heal()
