"""A full disk answers an error, other requests are served, and freed space heals the broker."""

import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.batches import batch
from support.broker_process import BrokerProcess
from support.requests import FetchPlace, a_topic, fetch_one, metadata, produce
from support.wire import Connection
from support.writer import whole_log

OwnBroker = Callable[..., BrokerProcess]

DISK_BYTES, FILLER_BYTES = 48 << 20, 40 << 20
WRITES_MAX = 200
VALUE = b"v" * 200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes; skipped where this user may not mount one."""
    place = tmp_path / "small-disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk is not permitted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


def fill_until_refused(connection: Connection, topic: str) -> int:
    """Produce until the broker answers an error; returns how many were acknowledged."""
    for written in range(WRITES_MAX):
        answer = produce(connection, {(topic, 0): batch([VALUE])})[topic, 0]
        if answer.error_code:
            assert answer.base_offset == -1
            return written
        assert answer.base_offset == written
    pytest.fail("the disk never filled")


def goes_on_serving(connection: Connection, topic: str, written: int) -> None:
    """Reads and metadata work although nothing can be written."""
    assert metadata(connection, [topic]).topics[topic][0] == 0
    fetched = fetch_one(connection, FetchPlace(topic, 0, 0))
    assert (fetched.error_code, fetched.high_watermark) == (0, written)


def produced_again(bootstrap: str, topic: str) -> int:
    """Keep trying as a client would until a produce succeeds; returns its offset."""
    for _ in range(WRITES_MAX):
        with Connection(bootstrap) as connection:
            answer = produce(connection, {(topic, 0): batch([b"healed"])})[topic, 0]
            if answer.error_code == 0:
                return answer.base_offset
    pytest.fail("producing never worked again")


def check_log(bootstrap: str, topic: str, written: int) -> None:
    log = whole_log(bootstrap, (topic, 0))
    assert [one.value for one in log[:written]] == [VALUE] * written
    assert log[-1].value == b"healed"
    assert {one.value for one in log[written:]} <= {VALUE, b"healed"}


def test_a_full_disk_answers_errors_and_heals(small_disk: Path, own_broker: OwnBroker) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(FILLER_BYTES))
    broker = own_broker(data=small_disk / "data")
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "filling")
        written = fill_until_refused(connection, topic)
        goes_on_serving(connection, topic, written)
    filler.unlink()
    offset = produced_again(broker.bootstrap_servers, topic)
    assert offset >= written
    check_log(broker.bootstrap_servers, topic, written)
    broker.restart()
    check_log(broker.bootstrap_servers, topic, written)
    assert "Traceback" not in broker.errors()


def test_a_file_size_limit_answers_errors_and_heals(own_broker: OwnBroker) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "limited")
        _, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (1 << 20, hard))
        written = fill_until_refused(connection, topic)
        assert written > 0
        goes_on_serving(connection, topic, written)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (hard, hard))
    offset = produced_again(broker.bootstrap_servers, topic)
    assert offset >= written
    check_log(broker.bootstrap_servers, topic, written)
    broker.restart()
    check_log(broker.bootstrap_servers, topic, written)
