"""A broker with short sessions, and groups of real consumers on it.

On an outside broker (OTTLA_TEST_BOOTSTRAP) set group.min.session.timeout.ms=1000,
group.initial.rebalance.delay.ms=200, group.consumer.session.timeout.ms=3000 and
group.consumer.heartbeat.interval.ms=300 there as well, with their lower bounds.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.broker_process import BrokerProcess
from support.groups.fleet import Fleet
from support.groups.membership import MemberOptions

SHORT_SESSIONS = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "200",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture(scope="session")
def group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of one broker with short sessions for all tests of a worker."""
    outside = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if outside:
        yield outside
        return
    broker = BrokerProcess(tmp_path_factory.mktemp("group-broker"), settings=SHORT_SESSIONS)
    broker.start()
    yield broker.bootstrap_servers
    broker.close()


@pytest.fixture
def new_fleet(tmp_path: Path) -> Iterator[Callable[[MemberOptions, int], Fleet]]:
    """Makes fleets whose processes end with the test, however it ends."""
    made: list[Fleet] = []

    def make(pattern: MemberOptions, partitions: int) -> Fleet:
        made.append(Fleet(tmp_path / f"fleet-{len(made)}", pattern, partitions))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()
