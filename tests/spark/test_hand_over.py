"""What tasks encode reaches the driver whole and in order, however much it is, and leaves nothing.

Without a JVM: what a task does with its record batches, and what the driver does with them then.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.spark import hand_over as handing
from ottla.spark.batch_commit import Load, Outcome, commit_batch
from ottla.spark.hand_over import RESULT_BYTES_MAX, forget, hand_over, staging_directory
from ottla.spark.ledger import LedgerEntry
from ottla.spark.options import Use
from ottla.spark.row_encoder import EncodedRun
from ottla.spark.sink_plan import TRANSACTION_MS_MAX, SinkPlan, sink_plan
from ottla.spark.staged_batches import StagedBatches, StagingFailed, local_directory
from spark.topics import make_topic, values_of

NewName = Callable[[], str]
SCHEMA = StructType([StructField("value", StringType())])
LARGE = b"x" * 100_000


def a_run(values: list[bytes], *, topic: str = "t", partition: int = 0) -> EncodedRun:
    """A run with a batch for each value."""
    batches = []
    for value in values:
        builder = BatchBuilder()
        builder.append(1, None, value)
        batches.append(builder.build())
    return EncodedRun(TopicPartition(topic, partition), batches, len(values))


def large_runs(*, topic: str = "t") -> list[EncodedRun]:
    """More than goes with a result: two partitions in turn, three batches a run."""
    return [
        a_run([b"%d/%d " % (run, n) + LARGE for n in range(3)], topic=topic, partition=run % 2)
        for run in range(6)
    ]


def a_plan(bootstrap: str = "x:1", topic: str = "t", **options: str) -> SinkPlan:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, **options}
    return sink_plan(Use.STREAM_WRITE, given, SCHEMA)


def staged(directory: Path, *, topic: str = "t") -> list[EncodedRun]:
    runs = hand_over(iter(large_runs(topic=topic)), str(directory))
    assert all(isinstance(run.batches, StagedBatches) for run in runs)
    return runs


def test_a_little_goes_with_the_result_and_no_file_is_made(tmp_path: Path) -> None:
    runs = [a_run([b"1", b"2"]), a_run([b"3"], partition=1)]
    assert hand_over(iter(runs), str(tmp_path)) == runs
    assert list(tmp_path.iterdir()) == []


def test_much_is_put_into_one_file_and_read_back_in_order(tmp_path: Path) -> None:
    runs = staged(tmp_path / "new" / "directory")
    assert len(list((tmp_path / "new" / "directory").iterdir())) == 1
    expected = large_runs()
    assert [(run.where, run.record_count) for run in runs] == [
        (run.where, run.record_count) for run in expected
    ]
    assert [list(run.batches) for run in runs] == [run.batches for run in expected]
    assert sum(run.size_bytes for run in runs) == sum(run.size_bytes for run in expected)
    forget(runs)
    assert list((tmp_path / "new" / "directory").iterdir()) == []


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def rows() -> Iterator[EncodedRun]:
        yield from large_runs()
        assert len(list(tmp_path.iterdir())) == 1
        raise RuntimeError("a bad row")

    with pytest.raises(RuntimeError, match="a bad row"):
        hand_over(rows(), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_two_attempts_of_a_task_do_not_share_a_file(tmp_path: Path) -> None:
    first, second = staged(tmp_path), staged(tmp_path)
    forget(first)
    assert [list(run.batches) for run in second] == [run.batches for run in large_runs()]


def test_without_a_directory_much_goes_with_the_result_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = large_runs()
    assert hand_over(iter(runs), "") == runs
    monkeypatch.setattr(handing, "TASK_BYTES_MAX", RESULT_BYTES_MAX)
    with pytest.raises(ConfigError, match="stagingDirectory"):
        hand_over(iter(runs), "")


def test_a_directory_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StagingFailed, match="file"):
        hand_over(iter(large_runs()), str(tmp_path / "file"))


@pytest.mark.parametrize("damage", ["gone", "short", "garbled"])
def test_a_file_that_is_not_as_it_was_left_is_never_written(
    damage: str, bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topic = make_topic(bootstrap, new_name())
    runs = staged(tmp_path, topic=topic)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    elif damage == "short":
        file.write_bytes(content[:-1])
    else:
        content[-1] ^= 1
        file.write_bytes(content)
    load = Load(topic, runs, LedgerEntry(topic, "q", 0))

    with pytest.raises(StagingFailed):
        asyncio.run(commit_batch(a_plan(bootstrap, topic), load))

    assert values_of(bootstrap, topic) == []
    again = Load(topic, staged(tmp_path, topic=topic), LedgerEntry(topic, "q", 0))
    assert asyncio.run(commit_batch(a_plan(bootstrap, topic), again)) is Outcome.WRITTEN


def test_a_staged_micro_batch_is_written_once_and_its_files_are_removed(
    bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    topic = make_topic(bootstrap, new_name())
    outcomes = []
    for _ in range(2):
        load = Load(topic, staged(tmp_path, topic=topic), LedgerEntry(topic, "q", 0))
        outcomes.append(asyncio.run(commit_batch(a_plan(bootstrap, topic), load)))
        assert list(tmp_path.iterdir()) == []
    assert outcomes == [Outcome.WRITTEN, Outcome.WAS_WRITTEN]
    expected = [
        b"%d/%d " % (run, n) + LARGE
        for part in (0, 1)
        for run in range(part, 6, 2)
        for n in (0, 1, 2)
    ]
    assert values_of(bootstrap, topic) == expected


OWN = "/tmp/blockmgr-694aacea"


@pytest.mark.parametrize(
    ("directories", "own"),
    [
        (OWN, OWN + "/ottla"),
        (OWN + ",/mnt/blockmgr-2", OWN + "/ottla"),
        ("/mnt/spark", ""),  # any process of any machine may have this one
        ("", ""),
    ],
)
def test_only_a_directory_of_one_spark_process_is_taken_for_its_own(
    directories: str, own: str
) -> None:
    assert local_directory({"SPARK_LOCAL_DIRS": directories}) == own


@pytest.mark.parametrize(
    ("named", "drivers", "tasks", "chosen"),
    [
        ("", "/a", "/a", "/a"),
        ("", "/a", "/b", ""),  # another process, perhaps on another machine
        ("", "", "/b", ""),
        ("/shared", "/a", "/b", "/shared"),
        ("/shared", "/a", "/a", "/shared"),
    ],
)
def test_files_go_only_where_the_driver_finds_them(
    named: str, drivers: str, tasks: str, chosen: str
) -> None:
    assert staging_directory(named, drivers, tasks) == chosen


@pytest.mark.parametrize("place", ["relative/path", "nonsense://host/path"])
def test_a_staging_directory_that_is_none_is_refused_at_the_start(place: str) -> None:
    with pytest.raises(ConfigError, match="stagingDirectory"):
        a_plan(stagingDirectory=place)


def test_a_staging_directory_is_for_exactly_once() -> None:
    with pytest.raises(ConfigError, match="stagingDirectory"):
        a_plan(stagingDirectory="/tmp", delivery="at-least-once")


def test_a_large_transaction_has_more_time_unless_the_person_set_it() -> None:
    plan = a_plan()
    default_ms = plan.producer.transaction_timeout_ms
    assert plan.under("n", 1_000_000).transaction_timeout_ms == default_ms
    assert plan.under("n", 1_000_000_000).transaction_timeout_ms == 200_000
    assert plan.under("n", 10**15).transaction_timeout_ms == TRANSACTION_MS_MAX
    told = a_plan(**{"kafka.transaction.timeout.ms": "5000"})
    assert told.under("n", 10**15).transaction_timeout_ms == 5_000
