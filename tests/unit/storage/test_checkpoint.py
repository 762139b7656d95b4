"""Checkpoint files and the names of files."""

from __future__ import annotations

import pytest

from ottla.model.ids import Offset, TopicPartition
from ottla.storage import checkpoint, file_names
from ottla.storage.simulated_disk import SimulatedDisk

PATH = "/checkpoint"


def test_offsets_come_back():
    disk = SimulatedDisk()
    offsets = {TopicPartition("a", 0): Offset(5), TopicPartition("b-c", 12): Offset(0)}
    checkpoint.write_offsets(disk, PATH, offsets)
    assert checkpoint.read_offsets(disk, PATH) == offsets


@pytest.mark.parametrize(
    "text", [b"", b"0\n1\n", b"9\n1\na 0 5\n", b"0\n1\na 0\n", b"0\n1\na b c\n"]
)
def test_a_damaged_checkpoint_says_nothing(text: bytes):
    disk = SimulatedDisk()
    disk.open(PATH, create=True).write_at(0, text)
    assert checkpoint.read_offsets(disk, PATH) == {}
    assert checkpoint.read_offsets(disk, "/none") == {}


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one():
    disk = SimulatedDisk()
    old = {TopicPartition("a", 0): Offset(5)}
    checkpoint.write_offsets(disk, PATH, old)
    disk.space_bytes = 3
    with pytest.raises(OSError, match="space"):
        checkpoint.write_offsets(disk, PATH, {TopicPartition("a", 0): Offset(6)})
    assert checkpoint.read_offsets(disk, PATH) == old


def test_names_of_segment_files_carry_the_base_offset():
    assert file_names.file_name(42, ".log") == "00000000000000000042.log"
    assert file_names.parse("00000000000000000042.log.swap") == (42, ".log.swap")
    for other in ("42.log", "leader-epoch-checkpoint", "0000000000000000004x.log"):
        assert file_names.parse(other) is None


def test_a_partitions_directory_is_its_topic_and_number():
    assert file_names.parse_partition("a-b-3") == TopicPartition("a-b", 3)
    deleted = file_names.deleted_directory(TopicPartition("t" * 249, 3), "f" * 32)
    assert len(deleted) == 255
    assert file_names.is_deleted_directory(deleted)
    assert file_names.parse_partition(deleted) is None
    for other in ("topic", "topic-", "-1", "topic-01"):
        assert file_names.parse_partition(other) is None
