"""Ten members over thirty partitions: joined, sent away, killed and paused while records flow."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, TopicPartition

from support.clients.confluent import ConfluentClient
from support.eventually import eventually
from support.groups.feed import Feed
from support.groups.fleet import MIXED, Fleet
from support.groups.membership import MemberOptions
from support.groups.requests import need_consumer_protocol
from support.groups.snapshots import Snapshots
from support.groups.verdict import Chronicle, missing

PARTITIONS = 30
DRAIN_SECONDS_MAX = 90.0

NewFleet = Callable[[MemberOptions, int], Fleet]
NewName = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A library and how its members agree."""

    library: str
    strategy: str = "range"
    protocol: str = "classic"

    def __str__(self) -> str:
        way = self.strategy if self.protocol == "classic" else f"{self.protocol}-protocol"
        return f"{self.library}-{way}"


KINDS = (
    Kind("confluent"),
    Kind("confluent", "cooperative-sticky"),
    Kind("confluent", protocol="consumer"),
    Kind("kafka_python", "cooperative-sticky"),
    Kind("aiokafka"),
    Kind(MIXED),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_group_of_ten_survives_a_storm(
    kind: Kind, group_broker: str, new_fleet: NewFleet, new_name: NewName
) -> None:
    if kind.protocol == "consumer":
        need_consumer_protocol(group_broker)
    topic = new_name()
    ConfluentClient(group_broker).create_topic(topic, partitions=PARTITIONS)
    pattern = MemberOptions(
        kind.library, "", group_broker, topic, topic, "", strategy=kind.strategy,
        protocol=kind.protocol,
    )  # fmt: skip
    fleet = new_fleet(pattern, PARTITIONS)
    feed, snapshots = Feed(group_broker, topic, PARTITIONS), Snapshots(group_broker, topic)
    try:
        pass_clean_changes(fleet)
        assert Chronicle(fleet).problems() == []
        assert repeats(fleet) == 0, "members that leave in good order leave nothing to repeat"
        pass_deaths_and_pauses(fleet)
        produced = feed.stop()
        eventually(
            lambda: not missing(fleet, produced),
            "reading of every record",
            timeout_seconds=DRAIN_SECONDS_MAX,
        )
        fleet.send_away(fleet.living)
    finally:
        snapshots.stop()
        feed.close()
    assert Chronicle(fleet).problems() == []
    assert snapshots.shared == []
    assert snapshots.stable_count > 0, "the broker described the group while it was stable"
    assert committed(group_broker, topic) == {
        partition: len(offsets) for partition, offsets in produced.items()
    }


def pass_clean_changes(fleet: Fleet) -> None:
    fleet.add(8)
    fleet.wait_settled()
    fleet.add(2)
    fleet.wait_settled()
    fleet.send_away(fleet.living[:1])
    fleet.wait_settled()


def pass_deaths_and_pauses(fleet: Fleet) -> None:
    """Two die and one stalls past its session; the stalled one comes back, another arrives."""
    first, second, paused, *others = fleet.living
    fleet.pause(paused)
    fleet.kill([first, second])
    fleet.wait_settled(others)
    fleet.resume(paused)
    fleet.add(1)
    fleet.wait_settled()


def repeats(fleet: Fleet) -> int:
    """How many records were read more than once."""
    read = Chronicle(fleet).read_offsets()
    return sum(times > 1 for counts in read.values() for times in counts.values())


def committed(bootstrap: str, topic: str) -> dict[int, int]:
    """The group's position in every partition that has one."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    try:
        wanted = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        return {one.partition: one.offset for one in consumer.committed(wanted, timeout=20)}
    finally:
        consumer.close()
