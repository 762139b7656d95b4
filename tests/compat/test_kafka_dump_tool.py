"""Kafka's own DumpLogSegments reads every file of our logs and finds nothing to complain about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.model.ids import TopicId, TopicPartition
from ottla.records.builder import ProducerStamp
from ottla.records.compression import Compression
from ottla.settings.topic import TopicSettings
from ottla.storage.compaction import begin_compaction, finish_compaction
from ottla.storage.disk import LocalDisk
from ottla.storage.log import Log
from ottla.storage.log_directory import LogDirectory
from unit.storage.logs import (
    NOW_MS,
    SetClock,
    append,
    batch,
    end_transaction,
    keyed,
    transactional,
)

TOOL = Path(__file__).parents[3] / "shared" / "bench" / "kt"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-anchor"
IS_HERE = TOOL.exists() and (CACHE / "libs" / ".complete").exists() and shutil.which("java")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_HERE, reason="Kafka's tools are not on this machine"),
]

COMPLAINTS = re.compile(r"mismatch|corrupt|out of order|exception|invalid|isvalid: false", re.I)


def dump(*files: Path, options: tuple[str, ...] = ()) -> str:
    """What the tool prints; it must neither fail nor complain."""
    command = [str(TOOL), "DumpLogSegments", *options, "--files", ",".join(map(str, files))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    complaints = [line for line in lines if COMPLAINTS.search(line)]
    assert not complaints, "\n".join(complaints)
    return done.stdout


def a_varied_log(directory: LogDirectory, settings: TopicSettings) -> Log:
    """Codecs, keys, producers, transactions that end both ways, three epochs, several segments."""
    partition = TopicPartition("varied", 0)
    log = directory.open_log(partition, settings, topic_id=TopicId(bytes(range(16)))).log
    for number in range(60):
        codec = list(Compression)[number % len(Compression)]
        producer = ProducerStamp(7, 0, number)
        data = batch(
            b"%d " % number * 30,
            key=b"key %d" % (number % 5),
            timestamp=NOW_MS + 10 * number,
            compression=codec,
            producer=producer,
        )
        append(log, data, epoch=number // 20)
    append(log, transactional(8, 0, b"aborted"), transactional(9, 0, b"committed"), epoch=3)
    end_transaction(log, 8, commit=False)
    end_transaction(log, 9, commit=True)
    log.advance_high_watermark(log.end_offset)
    return log


def files_of(directory: LogDirectory, suffix: str) -> list[Path]:
    found = sorted(Path(directory.root, "varied-0").glob(f"*{suffix}"))
    assert found
    return found


def a_closed_directory(root: Path, *, compacted: bool = False) -> LogDirectory:
    settings = replace(TopicSettings(), segment_bytes=3000, index_interval_bytes=400)
    directory = LogDirectory.open(LocalDisk(), str(root), SetClock())
    log = a_varied_log(directory, settings)
    if compacted:
        policy = frozenset({"compact"})
        log.configure(replace(settings, cleanup_policy=policy, min_cleanable_dirty_ratio=0.0))
        append(log, keyed((b"key 1", None)), epoch=3)
        log.roll()
        log.advance_high_watermark(log.end_offset)
        job = begin_compaction(log, NOW_MS)
        job.run(lambda _: None)
        assert finish_compaction(log, job) is not None
    directory.close(on_failure=lambda partition, error: pytest.fail(f"{partition}: {error}"))
    return directory


@pytest.mark.parametrize("compacted", [False, True])
def test_the_tool_reads_data_and_indexes(tmp_path: Path, compacted: bool):
    directory = a_closed_directory(tmp_path, compacted=compacted)
    logs = files_of(directory, ".log")
    printed = dump(*logs, options=("--deep-iteration", "--print-data-log"))
    assert "endTxnMarker: ABORT" in printed
    assert "producerId: 7" in printed
    assert "59 59 59" in printed
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", printed, re.M)]
    assert offsets == sorted(set(offsets))
    assert (offsets == list(range(64))) is not compacted
    assert printed.count("Log starting offset") == len(logs)
    indexes = [*files_of(directory, ".index"), *files_of(directory, ".timeindex")]
    printed = dump(*indexes)
    assert "position: " in printed
    assert "timestamp: " in printed
    dump(*files_of(directory, ".index"), options=("--index-sanity-check",))


def test_the_tool_reads_transactions_and_producers(tmp_path: Path):
    directory = a_closed_directory(tmp_path)
    printed = dump(*files_of(directory, ".txnindex"))
    assert re.search(r"producerId: 8 firstOffset: 60 lastOffset: 62 lastStableOffset: 61", printed)
    printed = dump(files_of(directory, ".snapshot")[-1])
    assert re.search(r"producerId: 7 producerEpoch: 0 .*lastSequence: 59", printed)
    assert "producerId: 8" in printed
    assert "producerId: 9" in printed
