"""How far groups are behind, and how that changes."""

import pytest

from ottla.cli.lag_report import GroupLag, lag_json, progress
from ottla.clients.group_offsets import PartitionLag
from ottla.clients.groups import GroupDescription, GroupMember
from ottla.model.ids import BrokerId, Offset, TopicPartition

MEMBER = GroupMember("m-1", None, "billing", "127.0.0.1", ("t",), (TopicPartition("t", 0),))
GROUP = GroupDescription("g", "classic", "Stable", "consumer", "range", BrokerId(1), (MEMBER,))


def a_row(partition: int, committed: int | None, end: int | None) -> PartitionLag:
    return PartitionLag(
        TopicPartition("t", partition),
        None if committed is None else Offset(committed),
        Offset(0),
        None if end is None else Offset(end),
    )


def test_lag_is_unknown_without_a_commit_or_an_end_and_never_negative() -> None:
    rows = (a_row(0, 4, 10), a_row(1, None, 10), a_row(2, 4, None), a_row(3, 12, 10))
    assert [row.lag for row in rows] == [6, None, None, 0]
    assert GroupLag(GROUP, rows, 0.0).total == 6


def test_progress_counts_partitions_known_both_times() -> None:
    before = GroupLag(GROUP, (a_row(0, 0, 100), a_row(1, None, 50)), 10.0)
    now = GroupLag(GROUP, (a_row(0, 40, 110), a_row(1, 20, 60), a_row(2, 9, 9)), 12.0)
    moved = progress(before, now)
    assert moved is not None
    assert (moved.read_per_s, moved.written_per_s) == (20.0, 10.0)
    assert moved.seconds_left(now.total) == pytest.approx(11.0)
    assert moved.seconds_left(0) == 0.0
    assert progress(now, now) is None


def test_a_group_that_reads_no_faster_than_is_written_never_catches_up() -> None:
    before = GroupLag(GROUP, (a_row(0, 0, 100),), 0.0)
    moved = progress(before, GroupLag(GROUP, (a_row(0, 5, 105),), 1.0))
    assert moved is not None
    assert moved.seconds_left(100) is None


def test_json_names_who_reads_a_partition() -> None:
    told = lag_json(GroupLag(GROUP, (a_row(0, 4, 10), a_row(1, 4, 10)), 0.0))
    assert told["lag"] == 12
    partitions = told["partitions"]
    assert isinstance(partitions, list)
    assert [row["client_id"] for row in partitions] == ["billing", None]
