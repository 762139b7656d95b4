"""What the doctor thinks of what it sees."""

from ottla.cli.checkup import (
    Finding,
    State,
    judge_advertised,
    judge_answers,
    judge_clocks,
    judge_cluster,
    judge_controller,
    judge_log_dir,
    judge_partitions,
)
from ottla.clients.address import Address
from ottla.clients.client_metrics import ClientMetrics
from ottla.clients.log_dirs import LogDir
from ottla.clients.metadata import BrokerInfo, ClusterPicture, PartitionInfo, TopicInfo
from ottla.errors import ErrorCode
from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition

ONE = BrokerId(1)


def a_broker(host: str) -> BrokerInfo:
    return BrokerInfo(ONE, Address(host, 9092))


def a_topic(*partitions: PartitionInfo) -> TopicInfo:
    return TopicInfo("t", NO_TOPIC_ID, False, partitions)


def a_directory(*, free: int, error: ErrorCode = ErrorCode.NONE) -> LogDir:
    return LogDir(ONE, "/data", error, 1000, free, {TopicPartition("t", 0): 10})


def needs_fix(finding: Finding | None, state: State) -> bool:
    return finding is not None and finding.state is state and bool(finding.fix)


def test_a_wildcard_cannot_be_advertised() -> None:
    finding = judge_advertised(Address("10.0.0.1", 9092), a_broker("0.0.0.0"))
    assert needs_fix(finding, State.BAD)


def test_a_loopback_address_is_no_use_to_other_machines() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        finding = judge_advertised(Address("10.0.0.1", 9092), a_broker(host))
        assert needs_fix(finding, State.BAD)


def test_a_loopback_address_is_fine_where_it_was_asked_for() -> None:
    assert judge_advertised(Address("localhost", 9092), a_broker("127.0.0.1")) is None
    assert judge_advertised(Address("10.0.0.1", 9092), a_broker("10.0.0.1")) is None


def test_a_cluster_needs_brokers_and_a_controller() -> None:
    empty = ClusterPicture()
    whole = ClusterPicture("id", ONE, {ONE: a_broker("h")})
    assert needs_fix(judge_cluster(empty), State.BAD)
    assert needs_fix(judge_controller(empty), State.BAD)
    assert judge_cluster(whole).state is State.GOOD
    assert judge_controller(whole).state is State.GOOD


def test_partitions_without_leader_are_bad_and_without_replica_worrying() -> None:
    good = PartitionInfo(0, ONE, replicas=(ONE,), in_sync=(ONE,))
    behind = PartitionInfo(1, ONE, replicas=(ONE, BrokerId(2)), in_sync=(ONE,))
    leaderless = PartitionInfo(2, BrokerId(-1), replicas=(ONE,), in_sync=(ONE,))
    assert judge_partitions([a_topic(good)]).state is State.GOOD
    assert needs_fix(judge_partitions([a_topic(good, behind)]), State.WARNING)
    finding = judge_partitions([a_topic(good, behind, leaderless)])
    assert needs_fix(finding, State.BAD)
    assert "t-2" in finding.detail


def test_a_full_or_failed_disk_is_reported() -> None:
    assert judge_log_dir(a_directory(free=500)).state is State.GOOD
    assert needs_fix(judge_log_dir(a_directory(free=10)), State.WARNING)
    failed = a_directory(free=500, error=ErrorCode.KAFKA_STORAGE_ERROR)
    assert needs_fix(judge_log_dir(failed), State.BAD)


def test_records_from_the_future_point_to_a_wrong_clock() -> None:
    now_ms = 1_000_000
    assert judge_clocks({}, now_ms).state is State.GOOD
    assert judge_clocks({"t": now_ms + 5_000}, now_ms).state is State.GOOD
    finding = judge_clocks({"t": now_ms - 1, "u": now_ms + 3_600_000}, now_ms)
    assert needs_fix(finding, State.WARNING)
    assert finding.detail.startswith("u ")


def test_slow_missing_and_held_back_answers_are_reported() -> None:
    quick = {"requests_answered": 8, "request_latency_avg_ms": 1.0, "connect_max_ms": 2.0}
    assert judge_answers(ClientMetrics(**quick)).state is State.GOOD
    for trouble, words in (
        ({"requests_failed": 2}, "2 of 10 requests"),
        ({"throttled_ms": 70}, "70 ms"),
        ({"request_latency_avg_ms": 900.0}, "900.0 ms on average"),
        ({"connect_max_ms": 4000.0}, "4000.0 ms at most"),
    ):
        finding = judge_answers(ClientMetrics(**{**quick, **trouble}))
        assert needs_fix(finding, State.WARNING)
        assert words in finding.detail
