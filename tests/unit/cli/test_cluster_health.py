"""What is said of a cluster's health, from what brokers answered."""

from dataclasses import replace

from ottla.cli.cluster_health import (
    Findings,
    ailing_leaders,
    ailing_topics,
    grouped,
    health_of,
)
from ottla.clients.absences import Absence
from ottla.clients.address import Address
from ottla.clients.cluster import Cluster
from ottla.clients.log_dirs import LogDir
from ottla.clients.metadata import BrokerInfo, PartitionInfo, TopicInfo
from ottla.clients.placement import Reassignment
from ottla.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from ottla.protocol.messages.describe_topic_partitions import AbsenceCause

CLUSTER = Cluster(
    "c",
    BrokerId(1),
    tuple(BrokerInfo(BrokerId(each), Address("h", 9000 + each), "r") for each in (1, 2)),
)
T0 = TopicPartition("t", 0)


def a_row(
    replicas: tuple[int, ...], in_sync: tuple[int, ...], *, leader: int = 1, number: int = 0
) -> PartitionInfo:
    return PartitionInfo(
        number,
        BrokerId(leader),
        replicas=tuple(map(BrokerId, replicas)),
        in_sync=tuple(map(BrokerId, in_sync)),
    )


def a_topic(*rows: PartitionInfo, name: str = "t") -> TopicInfo:
    return TopicInfo(name, NO_TOPIC_ID, False, rows)


def a_directory(broker: int, size: int, error: ErrorCode = ErrorCode.NONE) -> LogDir:
    return LogDir(BrokerId(broker), "/data", error, -1, -1, {T0: size})


def test_a_cluster_with_everything_in_sync_is_healthy() -> None:
    health = health_of(Findings(CLUSTER, [a_topic(a_row((1, 2), (2, 1)))]))
    assert health.is_healthy
    assert (health.partitions, health.under_replicated) == (1, 0)
    assert [
        (each.leads, each.is_preferred, each.replicas, each.behind) for each in health.loads
    ] == [
        (1, 1, 1, 0),
        (0, 0, 1, 0),
    ]
    assert [each.is_controller for each in health.loads] == [True, False]


def test_without_a_controller_a_cluster_is_not_healthy() -> None:
    assert not health_of(Findings(replace(CLUSTER, controller=BrokerId(-1)), [])).is_healthy


def test_the_worst_comes_first_and_each_is_counted() -> None:
    topic = a_topic(
        a_row((1, 2, 3), (1, 2), number=0),
        a_row((1, 2, 3), (1,), number=1),
        a_row((3,), (3,), number=2, leader=-1),
    )
    health = health_of(Findings(CLUSTER, [topic], min_in_sync={"t": 2}))
    assert [each.partition.partition for each in health.ailing] == [2, 1, 0]
    assert [each.state for each in health.ailing] == [
        "offline",
        "under min in sync",
        "under-replicated",
    ]
    assert (health.offline, health.under_min_in_sync, health.under_replicated) == (1, 1, 3)
    assert health.ailing[2].reasons == ("broker 3 is not there",)
    assert ailing_topics([topic, a_topic(name="fine")], []) == ["t"]


def test_a_replica_behind_is_told_by_its_bytes() -> None:
    found = Findings(CLUSTER, [a_topic(a_row((1, 2), (1,)))])
    sizes = {100: "4.9 KiB behind", 5_120: "in sync soon"}
    for size, expected in sizes.items():
        known = replace(found, directories=[a_directory(1, 5_120), a_directory(2, size)])
        assert expected in health_of(known).ailing[0].reasons[0]
    assert "not in sync" in health_of(found).ailing[0].reasons[0]
    empty = replace(a_directory(2, 0), partition_bytes={})
    absent = replace(found, directories=[a_directory(1, 5_120), empty])
    assert "does not hold it" in health_of(absent).ailing[0].reasons[0]


def test_a_full_disk_is_told() -> None:
    full = replace(a_directory(2, 100), usable_bytes=4_096)
    found = Findings(CLUSTER, [a_topic(a_row((1, 2), (1,)))], directories=[full])
    assert "its disk is full" in health_of(found).ailing[0].reasons[0]


def test_a_partition_that_nobody_leads_tells_who_is_needed() -> None:
    health = health_of(Findings(CLUSTER, [a_topic(a_row((1, 2, 3), (3,), leader=-1))]))
    assert health.ailing[0].reasons[0] == "broker 3, which was in sync last, is not there"


def test_partitions_to_which_the_same_happened_are_told_of_together() -> None:
    topic = a_topic(
        *(a_row((1, 2, 3), (1, 2), number=number) for number in range(1_000)),
        a_row((1, 2, 3), (1, 3), number=1_000),
    )
    absences = {
        TopicPartition("t", number): [
            Absence(BrokerId(3), AbsenceCause.SILENT, 5_000 + number, 10_000, 12_000, number)
        ]
        for number in range(1_000)
    }
    health = health_of(Findings(CLUSTER, [topic], absences=absences))
    died, lags = grouped(health.ailing)
    assert (len(died.partitions), len(lags.partitions)) == (1_000, 1)
    assert died.reasons == (
        "broker 3 is not there; it left at 1970-01-01T00:00:05Z, when it had not asked its leader"
        " for 10.0 s and was up to 999 records behind",
    )
    assert lags.reasons == ("broker 2 is there and not in sync",)


def test_the_leaders_of_ailing_partitions_are_asked_why() -> None:
    topics = [
        a_topic(a_row((1, 2), (1,)), a_row((2, 1), (2,), leader=2, number=1)),
        a_topic(a_row((1, 2), (2,), leader=2), a_row((1, 2), (1, 2), number=1), name="u"),
        a_topic(a_row((3,), (3,), leader=-1), name="v"),
    ]
    assert ailing_leaders(topics, []) == {1: {"t"}, 2: {"t", "u"}}


def test_a_replica_that_arrives_is_not_missed() -> None:
    move = Reassignment(T0, (BrokerId(1), BrokerId(2)), (BrokerId(2),), ())
    topic = a_topic(a_row((1, 2), (1,)))
    assert health_of(Findings(CLUSTER, [topic], [move])).is_healthy
    assert not health_of(Findings(CLUSTER, [topic])).is_healthy
    assert ailing_topics([topic], [move]) == []


def test_a_broken_directory_is_no_health() -> None:
    broken = a_directory(2, 0, ErrorCode.KAFKA_STORAGE_ERROR)
    assert not health_of(Findings(CLUSTER, [], directories=[broken])).is_healthy
