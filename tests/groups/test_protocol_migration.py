"""A group moves to the consumer protocol and back while it reads, member by member."""

import os
from collections.abc import Callable

import pytest

from support.clients.confluent import ConfluentClient
from support.eventually import eventually
from support.groups.feed import Feed
from support.groups.fleet import Fleet
from support.groups.membership import MemberOptions
from support.groups.requests import need_consumer_protocol
from support.groups.verdict import Chronicle, missing

PARTITIONS = 12
MEMBERS = 3


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_moves_between_the_protocols_and_loses_no_position(
    strategy: str,
    group_broker: str,
    new_fleet: Callable[[MemberOptions, int], Fleet],
    new_name: Callable[[], str],
) -> None:
    need_consumer_protocol(group_broker)
    if strategy == "cooperative-sticky" and os.environ.get("OTTLA_TEST_BOOTSTRAP"):
        pytest.skip("Apache Kafka does not move groups of librdkafka's cooperative-sticky members")
    topic = new_name()
    ConfluentClient(group_broker).create_topic(topic, partitions=PARTITIONS)
    pattern = MemberOptions("confluent", "", group_broker, topic, topic, "", strategy=strategy)
    fleet = new_fleet(pattern, PARTITIONS)
    feed = Feed(group_broker, topic, PARTITIONS)
    try:
        fleet.add(MEMBERS, protocol="classic")
        fleet.wait_settled()
        for protocol in ("consumer", "classic"):
            leaving = fleet.living
            for member in leaving:
                fleet.add(1, protocol=protocol)
                fleet.wait_settled()
                fleet.send_away([member])
                fleet.wait_settled()
        produced = feed.stop()
        eventually(lambda: not missing(fleet, produced), "reading of every record")
    finally:
        feed.close()
    assert Chronicle(fleet).problems() == []
