"""ZooKeeper servers of this machine, as tests and local clusters start them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.testing import zookeeper
from ottla.testing.zookeeper import (
    Ensemble,
    ZooKeeper,
    ZooKeeperFailedToStart,
    gives_session,
    why_unavailable,
)


def test_a_server_can_be_killed_started_again_and_paused(own_zookeeper: ZooKeeper) -> None:
    (server,) = own_zookeeper.servers
    address = own_zookeeper.address
    assert own_zookeeper.leader is server
    own_zookeeper.kill()
    assert not server.is_running
    assert not gives_session(server.port)
    with pytest.raises(RuntimeError, match="no ZooKeeper server leads"):
        _ = own_zookeeper.leader
    own_zookeeper.start()
    assert own_zookeeper.address == address
    own_zookeeper.pause()
    assert not gives_session(server.port, timeout_seconds=0.3)
    own_zookeeper.resume()
    server.wait_ready()
    own_zookeeper.pause()  # a paused server can be stopped


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    if reason := why_unavailable():
        pytest.skip(reason)
    broken = Ensemble(settings={"tickTime": "soon"})
    with (
        pytest.raises(ZooKeeperFailedToStart, match="soon"),
        ZooKeeper(data=tmp_path, ensemble=broken),
    ):
        pass


def test_what_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "_jars_directory", lambda: None)
    assert "pip install" in str(why_unavailable())
    monkeypatch.setattr(zookeeper, "_jars_directory", lambda: Path("jars"))
    monkeypatch.setattr(zookeeper, "_java", lambda: None)
    assert "Java" in str(why_unavailable())
    monkeypatch.setattr(zookeeper, "_java", lambda: "java")
    assert why_unavailable() is None
