"""The broker dies and comes back while groups of every library read: they go on."""

from collections.abc import Callable

import pytest

from support.broker_process import BrokerProcess
from support.clients.confluent import ConfluentClient
from support.eventually import eventually
from support.groups.feed import Feed
from support.groups.fleet import Fleet
from support.groups.journal import ASSIGNED, COMMITTED, LOST, REVOKED
from support.groups.membership import MemberOptions
from support.groups.verdict import Chronicle, missing

PARTITIONS = 6
MEMBERS = 2
RESTARTS = 3
DRAIN_SECONDS_MAX = 90.0
KINDS = (
    ("confluent", "classic"),
    ("confluent", "consumer"),
    ("kafka_python", "classic"),
    ("aiokafka", "classic"),
)

OwnBroker = Callable[..., BrokerProcess]
NewFleet = Callable[[MemberOptions, int], Fleet]


def read_records(fleet: Fleet) -> int:
    return sum(counts.total() for counts in Chronicle(fleet).read_offsets().values())


def changes(fleet: Fleet) -> int:
    """How often its members were told of a change of their partitions."""
    return sum(len(member.of_kind(ASSIGNED, REVOKED, LOST)) for member in fleet.members)


@pytest.mark.slow
def test_groups_go_on_when_the_broker_is_killed_and_started_again(
    own_broker: OwnBroker, new_fleet: NewFleet
) -> None:
    broker = own_broker(settings={"group.initial.rebalance.delay.ms": "200"})
    topic, bootstrap = "read-through-restarts", broker.bootstrap_servers
    ConfluentClient(bootstrap).create_topic(topic, partitions=PARTITIONS)
    fleets = []
    for library, protocol in KINDS:
        pattern = MemberOptions(
            library,
            "",
            bootstrap,
            f"{library}-{protocol}",
            topic,
            "",
            session_timeout_ms=45_000,
            protocol=protocol,
        )
        fleets.append(new_fleet(pattern, PARTITIONS))
        fleets[-1].add(MEMBERS)
    feed = Feed(bootstrap, topic, PARTITIONS)
    try:
        for fleet in fleets:
            fleet.wait_settled()
            wait_committed(fleet)
        before = [changes(fleet) for fleet in fleets]
        for number in range(RESTARTS):
            if number % 2:
                broker.stop()
            broker.restart()
            wait_progress(fleets)
        produced = feed.stop()
        for fleet in fleets:
            eventually(
                lambda fleet=fleet: not missing(fleet, produced),
                f"reading of every record by {fleet.pattern.group}",
                timeout_seconds=DRAIN_SECONDS_MAX,
            )
    finally:
        feed.close()
    for fleet in fleets:
        assert Chronicle(fleet).problems() == []
    assert [changes(fleet) for fleet in fleets] == before, "restarts within the session are nothing"


def wait_committed(fleet: Fleet) -> None:
    """Wait until every member reads. kafka-python 3.0.12 says and does nothing ever again where the
    broker dies while a new member asks where to begin; that is not what is tested here."""
    eventually(
        lambda: all(member.of_kind(COMMITTED) for member in fleet.living),
        f"a commit of every member of {fleet.pattern.group}",
        timeout_seconds=DRAIN_SECONDS_MAX,
    )


def wait_progress(fleets: list[Fleet]) -> None:
    before = [read_records(fleet) for fleet in fleets]
    for fleet, read in zip(fleets, before, strict=True):
        eventually(
            lambda fleet=fleet, read=read: read_records(fleet) > read,
            f"progress of {fleet.pattern.group}",
            timeout_seconds=DRAIN_SECONDS_MAX,
        )
