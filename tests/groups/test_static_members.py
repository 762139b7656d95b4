"""Static members: a bounce within the session disturbs nobody, and an identity has one holder."""

from collections.abc import Callable

import pytest

from support.broker_process import BrokerProcess
from support.clients.confluent import ConfluentClient
from support.eventually import eventually
from support.groups.feed import Feed
from support.groups.fleet import Fleet, Member
from support.groups.journal import ASSIGNED, FAILED, LOST, REVOKED
from support.groups.membership import MemberOptions
from support.groups.requests import need_consumer_protocol
from support.groups.verdict import Chronicle, missing

PARTITIONS = 8
MEMBERS = 4
BOUNCE_SECONDS_MAX = 45.0

NewFleet = Callable[[MemberOptions, int], Fleet]
NewName = Callable[[], str]


def a_static_fleet(
    pattern: MemberOptions, new_fleet: NewFleet, topic: str, *, count: int = MEMBERS
) -> Fleet:
    ConfluentClient(pattern.bootstrap).create_topic(topic, partitions=PARTITIONS)
    fleet = new_fleet(pattern, PARTITIONS)
    for number in range(count):
        fleet.add(instance_id=f"{topic}-{number}")
    fleet.wait_settled()
    return fleet


def assignments(members: list[Member]) -> int:
    """How often any of them was told of a change of its partitions."""
    return sum(len(member.of_kind(ASSIGNED, REVOKED, LOST)) for member in members)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["confluent", "kafka_python", "aiokafka"])
def test_a_rolling_bounce_of_static_members_causes_no_rebalance(
    library: str, group_broker: str, new_fleet: NewFleet, new_name: NewName
) -> None:
    topic = new_name()
    pattern = MemberOptions(library, "", group_broker, topic, topic, "", session_timeout_ms=60_000)
    fleet = a_static_fleet(pattern, new_fleet, topic)
    settled_in = max(event.generation for event in fleet.living[0].of_kind(ASSIGNED))
    feed = Feed(group_broker, topic, PARTITIONS)
    try:
        for number, member in enumerate(list(fleet.living)):
            bounce(fleet, member, is_killed=number % 2 == 0)
        produced = feed.stop()
        eventually(lambda: not missing(fleet, produced), "reading of every record")
    finally:
        feed.close()
    assert Chronicle(fleet).problems() == []
    last = {one.of_kind(ASSIGNED)[-1].generation for one in fleet.living}
    assert last == {settled_in}, "there was no new generation"


@pytest.mark.slow
def test_a_static_member_of_the_consumer_protocol_returns_to_its_partitions(
    own_broker: Callable[..., BrokerProcess], new_fleet: NewFleet
) -> None:
    broker = own_broker(settings={"group.consumer.heartbeat.interval.ms": "300"})
    need_consumer_protocol(broker.bootstrap_servers)
    pattern = MemberOptions(
        "confluent", "", broker.bootstrap_servers, "static", "static", "", protocol="consumer"
    )
    fleet = a_static_fleet(pattern, new_fleet, "static")
    share = PARTITIONS // MEMBERS
    eventually(
        lambda: all(len(member.owned()) == share for member in fleet.living), "an even assignment"
    )
    for member in list(fleet.living):
        bounce(fleet, member, is_killed=False)  # a killed one keeps its identity for a session
    assert Chronicle(fleet).problems() == []


def bounce(fleet: Fleet, member: Member, *, is_killed: bool) -> None:
    """End the member, start another process in its name; nobody else may notice."""
    owned = member.owned()
    others = [one for one in fleet.living if one is not member]
    before = assignments(others)
    if is_killed:
        fleet.kill([member])
    else:
        fleet.send_away([member])
    (again,) = fleet.add(instance_id=member.instance_id)
    eventually(
        lambda: again.owned() == owned,
        "the return to the same partitions",
        timeout_seconds=BOUNCE_SECONDS_MAX,
    )
    assert len(again.of_kind(ASSIGNED)) == 1, "it has all it is to have at once"
    assert assignments(others) == before, "the others were disturbed"


@pytest.mark.slow
def test_the_older_holder_of_an_identity_is_fenced_and_a_silent_one_expires(
    group_broker: str, new_fleet: NewFleet, new_name: NewName
) -> None:
    topic = new_name()
    pattern = MemberOptions(
        "confluent", "", group_broker, topic, topic, "", session_timeout_ms=4000
    )
    fleet = a_static_fleet(pattern, new_fleet, topic, count=2)
    older, other = fleet.living
    (newer,) = fleet.add(instance_id=older.instance_id)
    eventually(lambda: older.of_kind(FAILED), "the end of the older holder")
    assert "fenced" in older.of_kind(FAILED)[0].text.lower()
    older.is_gone = True
    fleet.wait_settled([newer, other])
    fleet.kill([newer])
    fleet.wait_settled([other])
