"""A real ZooKeeper for the tests here, started once a worker; each test has a branch of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ottla.testing.zookeeper import ZooKeeper, why_unavailable


def require_zookeeper() -> None:
    """Skips the test, with the reason, where ZooKeeper cannot run."""
    pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")
    if reason := why_unavailable():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_zookeeper() -> Iterator[ZooKeeper]:
    """A server that no test may stop."""
    require_zookeeper()
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def address(shared_zookeeper: ZooKeeper) -> str:
    """An empty branch on the shared server, with sessions of four seconds."""
    return f"{shared_zookeeper.address}/{uuid.uuid4().hex}/ottla?session_timeout_ms=4000"


@pytest.fixture
def own_zookeeper() -> Iterator[ZooKeeper]:
    """A server of this test's own, to be stopped and killed."""
    require_zookeeper()
    with ZooKeeper() as server:
        yield server
