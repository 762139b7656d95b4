"""Metadata that is damaged, emptied, older than the logs or another's: no log is ever deleted for
it, and `ottla log adopt` brings the topics back."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.batches import Sequenced, batch
from support.broker_process import REPOSITORY, BrokerProcess
from support.eventually import eventually
from support.requests import a_topic, init_producer_id, produce
from support.wire import Connection
from support.writer import whole_log

OwnBroker = Callable[..., BrokerProcess]
RECORDS = 20
NAME = "ottla-metadata.db"


def the_file(data: Path, suffix: str = "") -> Path:
    return data / f"{NAME}{suffix}"


def flip(path: Path, position: int) -> None:
    if not path.exists():
        return
    content = bytearray(path.read_bytes())
    for at in (position, position + 1):
        if at < len(content):
            content[at] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(data: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        the_file(data, suffix).unlink(missing_ok=True)


def empty(data: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        the_file(data, suffix).write_bytes(b"")


def flip_every_page(data: Path) -> None:
    for page in range(4096, the_file(data).stat().st_size, 4096):
        flip(the_file(data), page + 100)


def remove_identity_too(data: Path) -> None:
    remove(data, "", "-wal", "-shm", "-mark")
    (data / "meta.properties").unlink()


Damage = Callable[[Path], None]
DAMAGES: dict[str, Damage] = {
    "two bytes of the write-ahead log flipped": lambda data: flip(the_file(data, "-wal"), 5000),
    "write-ahead log cut": lambda data: cut(the_file(data, "-wal")),
    "write-ahead log removed": lambda data: remove(data, "-wal", "-shm"),
    "file emptied": lambda data: empty(data, ""),
    "file and write-ahead log emptied": lambda data: empty(data, "", "-wal"),
    "file cut": lambda data: cut(the_file(data)),
    "file removed": lambda data: remove(data, ""),
    "all files of the metadata removed": lambda data: remove(data, "", "-wal", "-shm", "-mark"),
    "a byte in each page of the file flipped": flip_every_page,
    "metadata and identity removed": remove_identity_too,
}


def a_broker_with_records(own_broker: OwnBroker) -> tuple[BrokerProcess, str, list[bytes]]:
    """Two partitions of a topic, one with records of an idempotent producer."""
    broker = own_broker()
    values = [b"record %d" % number for number in range(RECORDS)]
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "orders", partitions=2)
        producer_id, epoch = init_producer_id(connection)
        for number, value in enumerate(values):
            produce(connection, {(topic, 0): batch([value])})
            sequenced = Sequenced(producer_id, epoch, number)
            produce(connection, {(topic, 1): batch([value], producer=sequenced)})
    return broker, topic, values


def why_not_started(broker: BrokerProcess) -> str | None:
    try:
        broker.start()
    except RuntimeError as refusal:
        return str(refusal)
    return None


def read_all(broker: BrokerProcess, topic: str, partition: int) -> list[bytes]:
    return [record.value for record in whole_log(broker.bootstrap_servers, (topic, partition))]


def ottla(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(REPOSITORY / "src"))
    command = [sys.executable, "-m", "ottla", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_metadata_deletes_no_log_and_adopting_brings_all_back(
    own_broker: OwnBroker, damage: str
) -> None:
    broker, topic, values = a_broker_with_records(own_broker)
    broker.kill()
    DAMAGES[damage](broker.data)
    refusal = why_not_started(broker)
    if refusal is not None:  # else nothing was in the damaged file, as it had been moved by then
        assert "ottla log adopt" in refusal
        assert "Traceback" not in refusal
        adopted = ottla("log", "adopt", str(broker.data))
        assert adopted.returncode == 0, adopted.stderr
        broker.start()
    assert read_all(broker, topic, 0) == values
    assert read_all(broker, topic, 1) == values
    assert not list(broker.data.glob("*-delete"))


def test_adopted_topics_go_on_where_they_were(own_broker: OwnBroker) -> None:
    """Producer ids are not given out twice, and retention deletes nothing by default settings."""
    broker, topic, values = a_broker_with_records(own_broker)
    broker.stop()
    remove(broker.data, "", "-wal", "-shm", "-mark")
    assert ottla("log", "adopt", str(broker.data)).returncode == 0
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        producer_id, epoch = init_producer_id(connection)
        sequenced = Sequenced(producer_id, epoch, 0)
        produce(connection, {(topic, 1): batch([b"new"], producer=sequenced)})
    assert read_all(broker, topic, 1) == [*values, b"new"]
    shown = ottla("configs", "get", "topic", topic, "-b", broker.bootstrap_servers)
    assert "retention.ms" in shown.stdout, shown.stderr


def test_a_log_of_no_known_topic_is_kept_and_comes_back_with_its_topic(
    own_broker: OwnBroker,
) -> None:
    """Metadata of before the topic, put in place whole: nothing tells that it is old."""
    broker = own_broker()
    broker.stop()
    before = broker.data.parent / "before"
    before.mkdir()
    names = [path.name for path in broker.data.glob(f"{NAME}*")]
    for name in names:
        shutil.copy(broker.data / name, before / name)
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "orders")
        produce(connection, {(topic, 0): batch([b"kept"])})
    broker.stop()
    after = broker.data.parent / "after"
    after.mkdir()
    for name in names:
        shutil.move(broker.data / name, after / name)
        shutil.copy(before / name, broker.data / name)
    broker.start()
    assert f"{topic}-0 belongs to no topic" in broker.errors()
    assert len(list(broker.data.glob(f"{topic}-0.*-stray"))) == 1
    broker.stop()
    for name in names:
        shutil.copy(after / name, broker.data / name)
    broker.start()
    assert read_all(broker, topic, 0) == [b"kept"]
    assert not list(broker.data.glob("*-stray"))


def test_a_topic_deleted_before_a_crash_is_gone_after_it(own_broker: OwnBroker) -> None:
    """Its folder is back, as after a power cut that undid the renaming."""
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "orders")
        produce(connection, {(topic, 0): batch([b"old"])})
    broker.stop()
    kept = broker.data.parent / "kept"
    shutil.copytree(broker.data / f"{topic}-0", kept)
    broker.start()
    deleted = ottla("topics", "delete", topic, "--yes", "-b", broker.bootstrap_servers)
    assert deleted.returncode == 0, deleted.stderr
    broker.kill()
    shutil.copytree(kept, broker.data / f"{topic}-0")
    broker.start()
    eventually(lambda: not list(broker.data.glob(f"{topic}-0*")), "its files removed")
    assert not list(broker.data.glob("*-stray"))


def test_a_folder_that_is_no_log_is_left_alone(own_broker: OwnBroker) -> None:
    broker = own_broker()
    broker.stop()
    mine = broker.data / "backup-2024"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear K.")
    broker.start()
    broker.stop()
    assert (mine / "letter.txt").read_text() == "dear K."


def test_a_copy_of_the_folder_soon_has_everything_in_one_file(own_broker: OwnBroker) -> None:
    broker, topic, values = a_broker_with_records(own_broker)
    wal = the_file(broker.data, "-wal")
    eventually(lambda: not wal.exists() or not wal.stat().st_size, "the log moved into the file")
    copied = broker.data.parent / "copied"
    shutil.copytree(broker.data, copied, ignore=shutil.ignore_patterns("*-wal", "*-shm", ".lock"))
    broker.kill()
    other = own_broker(data=copied)
    assert read_all(other, topic, 0) == values


def test_a_log_whose_folder_is_gone_is_missed_and_its_offsets_are_not_used_again(
    own_broker: OwnBroker,
) -> None:
    broker, topic, _ = a_broker_with_records(own_broker)
    broker.stop()
    shutil.rmtree(broker.data / f"{topic}-0")
    broker.start()
    assert f"{topic}-0 is gone, and with it all records before offset {RECORDS}" in broker.errors()
    with Connection(broker.bootstrap_servers) as connection:
        written = produce(connection, {(topic, 0): batch([b"next"])})
    assert written[topic, 0].base_offset == RECORDS
