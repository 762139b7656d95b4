"""The data directory: one owner, checkpoints, clean and unclean stops, deletion."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.storage.directory_identity import Identity
from ottla.storage.disk import LocalDisk
from ottla.storage.flush import FlushJob
from ottla.storage.log_directory import CLOSED_AT_ONCE, RECOVERY_POINTS, LogDirectory
from ottla.storage.simulated_disk import SimulatedDisk
from unit.storage.logs import SetClock, append, batch, flush, settings, values

ROOT = "/data"
PARTITION = TopicPartition("a-topic.with_dots", 3)
TOPIC_ID = TopicId(bytes(range(16)))


def a_directory(disk: SimulatedDisk | None = None, clock: SetClock | None = None) -> LogDirectory:
    return LogDirectory.open(disk or SimulatedDisk(), ROOT, clock or SetClock())


def close(directory: LogDirectory) -> None:
    def fail(partition: TopicPartition, error: Exception) -> None:
        raise AssertionError(f"{partition}: {error}")

    directory.close(on_failure=fail)


def text(disk: SimulatedDisk, name: str) -> str:
    return disk.open(f"{ROOT}/{name}").read_at(0, 10_000).decode()


def test_a_second_owner_is_refused_with_a_sentence_that_helps(tmp_path: Path):
    first = LogDirectory.open(LocalDisk(), str(tmp_path), SetClock())
    with pytest.raises(ConfigError) as caught:
        LogDirectory.open(LocalDisk(), str(tmp_path), SetClock())
    assert str(tmp_path) in str(caught.value)
    assert "another broker" in str(caught.value)
    first.abandon()
    LogDirectory.open(LocalDisk(), str(tmp_path), SetClock()).abandon()


def with_logs(disk: SimulatedDisk, count: int) -> LogDirectory:
    directory = a_directory(disk)
    for index in range(count):
        log = directory.open_log(TopicPartition("topic", index), settings(), topic_id=TOPIC_ID).log
        append(log, batch(b"a"), epoch=3)
    return directory


def test_what_a_stop_syncs_all_at_once_survives_a_power_cut_right_after_it():
    disk = SimulatedDisk()
    directory = with_logs(disk, CLOSED_AT_ONCE + 1)
    ran: list[int] = []

    def run(jobs: Iterable[FlushJob]) -> None:
        ran.append(len(list(map(FlushJob.run, jobs))))

    directory.close(on_failure=lambda *_: pytest.fail("nothing fails here"), run=run)
    assert ran == [CLOSED_AT_ONCE, 1]
    disk.lose_power(lambda _: 0)
    again = a_directory(disk)
    assert again.was_closed_cleanly
    for partition in again.partitions():
        assert text(disk, f"{partition}/leader-epoch-checkpoint") == "0\n1\n3 0\n"
        assert disk.open(f"{ROOT}/{partition}/00000000000000000001.snapshot").size()
        opened = again.open_log(partition, settings())
        assert values(opened.log) == {0: b"a"}
        assert opened.report.batches_verified == 0


@pytest.mark.parametrize("is_stopped", [True, False])
def test_whose_log_it_is_survives_a_power_cut_once_something_was_synced(is_stopped: bool):
    disk = SimulatedDisk()
    directory = with_logs(disk, 1)
    (log,) = directory.logs.values()
    if is_stopped:
        close(directory)
    else:
        flush(log)
        directory.begin_checkpoints().run()
    disk.lose_power(lambda _: 0)
    assert a_directory(disk).topic_id(TopicPartition("topic", 0)) == TOPIC_ID


def test_a_stop_that_could_not_sync_leaves_no_mark_and_says_which_log_it_was():
    disk = SimulatedDisk()
    directory = with_logs(disk, 2)
    failed: list[TopicPartition] = []

    def run(jobs: Iterable[FlushJob]) -> None:
        first, second = jobs
        first.run()
        disk.fail_sync = True
        second.run()
        disk.fail_sync = False

    directory.close(on_failure=lambda partition, _: failed.append(partition), run=run)
    assert failed == [TopicPartition("topic", 1)]
    assert not a_directory(disk).was_closed_cleanly


def test_logs_come_back_after_a_clean_stop_without_verifying_anything():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings(), topic_id=TOPIC_ID).log
    append(log, batch(b"a"), batch(b"b"))
    log.advance_high_watermark(2)
    close(directory)
    again = a_directory(disk)
    assert again.was_closed_cleanly
    assert again.partitions() == [PARTITION]
    assert again.topic_id(PARTITION) == TOPIC_ID
    assert again.high_watermark(PARTITION) == 2
    opened = again.open_log(PARTITION, settings())
    assert opened.report.batches_verified == 0
    assert values(opened.log) == {0: b"a", 1: b"b"}


def test_the_clean_mark_does_not_outlive_the_next_start():
    disk = SimulatedDisk()
    close(a_directory(disk))
    assert disk.exists(f"{ROOT}/.kafka_cleanshutdown")
    a_directory(disk).abandon()
    disk.lose_power(lambda n: 0)
    assert not a_directory(disk).was_closed_cleanly


def test_after_a_kill_logs_are_verified_from_the_recovery_point():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings()).log
    append(log, batch(b"a"), batch(b"b"))
    flush(log)
    directory.begin_checkpoints().run()
    append(log, batch(b"c"))
    directory.abandon()
    opened = a_directory(disk).open_log(PARTITION, settings())
    assert opened.report.batches_verified == 1
    assert len(values(opened.log)) == 3


def test_checkpoints_are_written_as_kafka_does():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings(), topic_id=TOPIC_ID).log
    append(log, batch(b"a"), batch(b"b"))
    flush(log)
    log.advance_high_watermark(2)
    log.delete_records_before(1)
    directory.begin_checkpoints().run()
    name = "a-topic.with_dots 3"
    assert text(disk, "recovery-point-offset-checkpoint") == f"0\n1\n{name} 2\n"
    assert text(disk, "replication-offset-checkpoint") == f"0\n1\n{name} 2\n"
    assert text(disk, "log-start-offset-checkpoint") == f"0\n1\n{name} 1\n"
    metadata = text(disk, f"{PARTITION}/partition.metadata")
    assert metadata == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"


def test_the_start_offset_survives_a_restart():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings()).log
    append(log, batch(b"a"), batch(b"b"))
    log.advance_high_watermark(2)
    log.delete_records_before(1)
    close(directory)
    assert values(a_directory(disk).open_log(PARTITION, settings()).log) == {1: b"b"}


def test_indexes_lost_between_a_clean_stop_and_the_start_are_rebuilt():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings(index_interval_bytes=0)).log
    append(log, batch(b"a"), batch(b"b"))
    close(directory)
    disk.remove(f"{ROOT}/{PARTITION}/{0:020d}.timeindex")
    opened = a_directory(disk).open_log(PARTITION, settings())
    assert opened.report.rebuilt == [f"{0:020d}.timeindex"]


@pytest.mark.parametrize("clean", [True, False])
def test_lost_checkpoints_cost_time_but_no_records(clean: bool):
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings()).log
    append(log, batch(b"a"), batch(b"b"))
    flush(log)
    directory.begin_checkpoints().run()
    if clean:
        close(directory)
    else:
        directory.abandon()
    for entry in disk.entries(ROOT):
        if entry.name.endswith("checkpoint"):
            disk.remove(f"{ROOT}/{entry.name}")
    opened = a_directory(disk).open_log(PARTITION, settings())
    assert values(opened.log) == {0: b"a", 1: b"b"}
    assert opened.report.batches_verified == (0 if clean else 2)


def test_a_deleted_log_is_gone_at_once_and_its_bytes_later():
    disk, clock = SimulatedDisk(), SetClock()
    directory = a_directory(disk, clock)
    log = directory.open_log(PARTITION, settings(file_delete_delay_ms=1000)).log
    append(log, batch(b"a"))
    directory.delete_log(PARTITION)
    assert directory.partitions() == []
    fresh = directory.open_log(PARTITION, settings()).log
    assert fresh.end_offset == 0
    assert directory.begin_removal(clock.ms + 999).run() == 0
    assert directory.begin_removal(clock.ms + 1000).run() == 1
    assert [e.name for e in disk.entries(ROOT) if e.is_directory] == [str(PARTITION)]


def test_a_log_deleted_before_a_kill_is_removed_after_it():
    disk, clock = SimulatedDisk(), SetClock()
    directory = a_directory(disk, clock)
    directory.open_log(PARTITION, settings())
    directory.delete_log(PARTITION)
    directory.abandon()
    again = a_directory(disk, clock)
    assert again.partitions() == []
    assert again.begin_removal(clock.ms).run() == 1


def test_a_fenced_log_works_again_once_it_is_opened_again():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings()).log
    append(log, batch(b"a"))
    log.advance_high_watermark(1)
    log.fence("for the test")
    again = directory.reopen_log(PARTITION).log
    append(again, batch(b"b"))
    assert values(again) == {0: b"a", 1: b"b"}
    assert again.high_watermark == 1


def test_a_fenced_log_makes_the_stop_unclean():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    directory.open_log(PARTITION, settings()).log.fence("for the test")
    close(directory)
    assert not a_directory(disk).was_closed_cleanly


def test_another_nodes_data_is_refused():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    directory.claim(Identity(BrokerId(1), "a-cluster"))
    directory.claim(Identity(BrokerId(1), "a-cluster"))
    assert text(disk, "meta.properties") == "version=1\nnode.id=1\ncluster.id=a-cluster\n"
    with pytest.raises(ConfigError):
        directory.claim(Identity(BrokerId(2), "a-cluster"))


def test_names_that_are_no_partition_are_passed_over():
    disk = SimulatedDisk()
    for name in ("lost+found", "topic", "topic-x", "topic-01", "-5"):
        disk.make_directory(f"{ROOT}/{name}")
    assert a_directory(disk).partitions() == []


def test_only_a_machine_that_went_down_makes_records_doubtful() -> None:
    disk = SimulatedDisk()
    LogDirectory.open(disk, ROOT, SetClock()).close(on_failure=lambda *_: None)
    assert not LogDirectory.open(disk, ROOT, SetClock()).may_lack_records, "after a clean stop"
    disk.forget_locks()
    assert not LogDirectory.open(disk, ROOT, SetClock()).may_lack_records, "after a killed process"
    disk.lose_power(lambda count: count - 1)
    LogDirectory.open(disk, ROOT, SetClock()).abandon()
    again = LogDirectory.open(disk, ROOT, SetClock())
    assert again.may_lack_records, "a start that failed changes nothing about that"
    again.note_boot()
    again.abandon()
    disk.forget_locks()
    assert not LogDirectory.open(disk, ROOT, SetClock()).may_lack_records, "it was noted"


def test_a_checkpoint_that_could_not_be_written_is_written_the_next_time():
    disk = SimulatedDisk()
    directory = a_directory(disk)
    log = directory.open_log(PARTITION, settings()).log
    append(log, batch(b"a"))
    flush(log)
    disk.space_bytes = 0
    with pytest.raises(OSError, match="space"):
        directory.begin_checkpoints().run()
    disk.space_bytes = None
    directory.begin_checkpoints().run()
    assert text(disk, RECOVERY_POINTS).endswith(" 1\n")
    assert not directory.begin_checkpoints().offsets


def test_a_log_that_was_cut_is_so_when_it_is_opened_again():
    directory = a_directory(SimulatedDisk())
    log = directory.open_log(PARTITION, settings()).log
    append(log, batch(b"a"), batch(b"b"))
    log.truncate_to(1)
    log.fence("a sync failed")
    assert directory.reopen_log(PARTITION).log.flusher.is_cut
