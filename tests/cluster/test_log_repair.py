"""A replica with damage on its disk: repaired from the others, and only where they have it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Producer
from ottla.clients.topics import NewTopic
from ottla.testing import Cluster
from ottla.testing.cluster import FAST_SETTINGS, Shape
from ottla.testing.zookeeper import why_unavailable
from support.eventually import eventually

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))
VALUES = 200


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")
    with Cluster.of(Shape(brokers=3, settings=FAST_SETTINGS), tmp_path) as started:
        yield started


def verify(directory: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "ottla", "log", "verify", str(directory), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_a_damaged_replica_is_cut_back_and_fetches_the_rest_from_the_leader(
    cluster: Cluster, tmp_path: Path
) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics(NewTopic("orders", 1))
    cluster.wait_until_in_sync()
    with Producer(cluster.bootstrap_servers) as producer:
        for number in range(VALUES):
            producer.send("orders", b"%d" % number)
            producer.flush()
    cluster.wait_until_in_sync()
    leader = cluster.leader_of("orders")
    damaged = (leader + 1) % 3
    cluster.stop(damaged)
    places = [one for one in tmp_path.rglob("orders-0") if one.is_dir()]
    data = {place: min(place.glob("*.log")).read_bytes() for place in places}
    (place,) = [one for one in places if f"{damaged}" in one.parent.name]
    segment = min(place.glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    assert verify(place)[0] != 0

    def is_repaired() -> bool:
        code, _ = verify(place, "--repair", "--bootstrap", cluster.bootstrap_servers)
        return code == 0

    eventually(is_repaired, "the replica out of the set and repaired")
    assert segment.stat().st_size < len(content)
    assert list(place.glob("*.damaged"))
    cluster.start_brokers([damaged])
    cluster.wait_until_in_sync()
    eventually(lambda: segment.read_bytes() == data[place], "the same bytes as before")
    assert verify(place)[0] == 0


def test_the_only_copy_is_never_cut(tmp_path: Path) -> None:
    with Cluster.of(Shape(brokers=1, settings=FAST_SETTINGS), tmp_path) as alone:
        with Admin(alone.bootstrap_servers) as admin:
            admin.create_topics(NewTopic("single", 1))
        with Producer(alone.bootstrap_servers) as producer:
            producer.send("single", b"value")
        (place,) = [one for one in tmp_path.rglob("single-0") if one.is_dir()]
        alone.stop(0)
        segment = min(place.glob("*.log"))
        content = bytearray(segment.read_bytes())
        content[-1] ^= 0xFF
        segment.write_bytes(content)
        code, said = verify(place, "--repair", "--timeout", "2")
        assert code != 0
        assert "not repaired" in said
        assert segment.read_bytes() == bytes(content)
