"""kill -9 of the broker in the middle of commits: none acknowledged is lost, none goes back."""

from collections.abc import Callable
from random import Random

import pytest

from support.broker_process import BrokerProcess
from support.eventually import eventually
from support.groups.committer import Committer
from support.groups.requests import (
    LOADING,
    NONE,
    Membership,
    await_coordinator,
    heartbeat,
    join_alone,
)
from support.requests import a_topic
from support.wire import Connection

OwnBroker = Callable[..., BrokerProcess]

SEEDS = (101, 202)
KILLS_PER_SEED = 10
GROUPS = 6
PARTITIONS = 4
ACKNOWLEDGED_BEFORE_A_KILL_MAX = 200
SESSION_TIMEOUT_MS = 60_000
# Rolls and compacts the topic of the offsets under the load, so that starts read what is left.
SETTINGS = {
    "offsets.topic.segment.bytes": "1048576",
    "offsets.topic.num.partitions": "4",
    "log.cleaner.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_commits_survive_kill_9(own_broker: OwnBroker, seed: int) -> None:
    print(f"seed {seed}")
    random, broker = Random(seed), own_broker(settings=SETTINGS)
    committers = some_committers(broker)
    for _ in range(KILLS_PER_SEED):
        commit_until_killed(broker, committers, random.randint(1, ACKNOWLEDGED_BEFORE_A_KILL_MAX))
        broker.start()
        check_everything(broker, committers)
    for committer in committers:
        committer.start(broker.bootstrap_servers)
    for committer in committers:
        committer.finish()
    check_everything(broker, committers)
    broker.stop()
    broker.start()
    check_everything(broker, committers)


def some_committers(broker: BrokerProcess) -> list[Committer]:
    """Half of them commit without being members, half as the only member of their group."""
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "read", partitions=PARTITIONS)
        places = [(topic, partition) for partition in range(PARTITIONS)]
        committers = [Committer(f"group-{number}", places) for number in range(GROUPS)]
        for committer in committers[::2]:
            committer.membership = a_member(connection, committer.group)
    return committers


def a_member(connection: Connection, group: str) -> Membership:
    await_coordinator(connection, group)
    return join_alone(connection, group, session_timeout_ms=SESSION_TIMEOUT_MS)


def commit_until_killed(broker: BrokerProcess, committers: list[Committer], commits: int) -> None:
    def done() -> int:
        return sum(committer.acknowledged for committer in committers)

    wanted = done() + commits
    for committer in committers:
        committer.start(broker.bootstrap_servers)
    eventually(lambda: done() >= wanted, f"{commits} acknowledged commits")
    broker.kill()
    for committer in committers:
        committer.join()


def check_everything(broker: BrokerProcess, committers: list[Committer]) -> None:
    with Connection(broker.bootstrap_servers) as connection:
        for committer in committers:
            committer.check(connection)


def test_a_member_goes_on_in_its_generation_after_the_broker_was_killed(
    own_broker: OwnBroker,
) -> None:
    broker = own_broker(settings=SETTINGS)
    with Connection(broker.bootstrap_servers) as connection:
        membership = a_member(connection, "lonely")
    broker.restart()
    with Connection(broker.bootstrap_servers) as connection:
        answers: list[int] = []

        def is_loaded() -> bool:
            answers.append(heartbeat(connection, "lonely", membership))
            return answers[-1] not in LOADING

        eventually(is_loaded, "a loaded group")
        assert answers[-1] == NONE
        generation, member = membership
        assert heartbeat(connection, "lonely", (generation, f"{member}-not")) != NONE
