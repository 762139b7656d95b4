"""`ottla cluster status` says why a replica is not in sync, whoever took it out and for what."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cluster.conftest import require_zookeeper
from ottla import Producer
from ottla.errors import OttlaError
from ottla.testing.cluster import FAST_SETTINGS, Cluster, Shape
from support.command_line import Ottla, ottla_here
from support.eventually import eventually

LAG_SETTINGS = {"replica.lag.time.max.ms": "3000"}
SESSION_TIMEOUT_MS = 16_000
"""Much longer than a follower may lag, so that its leader gives it up first."""
DELAY_SECONDS = 0.4
"""Each way."""
RECORD_BYTES = 900_000
"""A follower gets one of these a round trip, and falls behind one who writes ten a second."""
PAUSE_SECONDS = 0.1
SEEN_SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    require_zookeeper()
    shape = Shape(settings={**FAST_SETTINGS, **LAG_SETTINGS}, session_timeout_ms=SESSION_TIMEOUT_MS)
    with Cluster.of(shape) as started:
        yield started


@pytest.fixture
def ottla(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    return ottla_here(cluster.bootstrap_servers, monkeypatch)


@pytest.fixture
def topic(cluster: Cluster, ottla: Ottla, new_name: Callable[[], str]) -> str:
    """One partition with a record, which all three replicas have: who has not asked for anything
    yet would be silent from the beginning."""
    name = new_name()
    assert ottla("topics", "create", name, "-p", "1").code == 0
    cluster.wait_until_in_sync(SEEN_SECONDS_MAX)
    assert ottla("produce", name, stdin="first\n").code == 0
    return name


def a_follower(cluster: Cluster, topic: str) -> int:
    """One that is not the controller, whose leaving would change more than is looked at."""
    others = {cluster.leader_of(topic), cluster.controller()}
    return next(each for each in range(3) if each not in others)


@contextmanager
def writing(cluster: Cluster, topic: str) -> Iterator[None]:
    """A large batch after another, which need not wait for followers."""
    has_begun, is_over = threading.Event(), threading.Event()

    def write() -> None:
        with Producer(cluster.bootstrap_servers, acks=1, enable_idempotence=False) as producer:
            while not is_over.wait(PAUSE_SECONDS):
                try:
                    producer.send(topic, b"x" * RECORD_BYTES).result(30)
                    has_begun.set()
                except OttlaError:
                    continue

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert has_begun.wait(SEEN_SECONDS_MAX)
        yield
    finally:
        is_over.set()
        writer.join(60)
        assert not writer.is_alive()


@contextmanager
def coming_back(cluster: Cluster, broker: int) -> Iterator[None]:
    """One that is away is back afterwards, also where a look at it fails: others need it."""
    try:
        yield
    finally:
        cluster.start_brokers([broker])
        cluster.wait_until_in_sync(SEEN_SECONDS_MAX)


def why_missing(ottla: Ottla, topic: str, broker: int) -> dict[str, object] | None:
    """What `status` knows of a replica once it is not in sync."""
    ran = ottla("cluster", "status", "--json")
    if not ran.out:
        return None  # whoever was killed was the controller, and there is no other yet
    told = json.loads(ran.out)
    for ailing in told["ailing"]:
        for missing in ailing["missing"] if ailing["topic"] == topic else ():
            if missing["broker"] == broker and missing["cause"]:
                return dict(missing)
    return None


def seen(ottla: Ottla, topic: str, broker: int) -> dict[str, object]:
    return eventually(
        lambda: why_missing(ottla, topic, broker),
        f"broker {broker} out of sync",
        timeout_seconds=SEEN_SECONDS_MAX,
    )


def test_a_follower_that_was_paused_had_not_asked(
    cluster: Cluster, ottla: Ottla, topic: str
) -> None:
    follower = a_follower(cluster, topic)
    with writing(cluster, topic):
        cluster.pause(follower)
        try:
            missing = seen(ottla, topic, follower)
            shown = ottla("cluster", "status").out
        finally:
            cluster.resume(follower)
    assert missing["cause"] == "silent"
    assert isinstance(missing["silent_ms"], int)
    assert missing["silent_ms"] >= 1_500
    assert "when it had not asked its leader for" in shown
    eventually(lambda: ottla("cluster", "status").code == 0, "health")


def test_a_follower_that_is_slow_had_not_caught_up(
    cluster: Cluster, ottla: Ottla, topic: str
) -> None:
    leader, follower = cluster.leader_of(topic), a_follower(cluster, topic)
    with writing(cluster, topic):
        cluster.network.delay(leader, follower, DELAY_SECONDS)
        cluster.network.delay(follower, leader, DELAY_SECONDS)
        try:
            missing = seen(ottla, topic, follower)
        finally:
            cluster.heal()
    assert missing["cause"] == "behind"
    assert missing["is_there"]
    assert isinstance(missing["lag_ms"], int)
    assert isinstance(missing["lag_records"], int)
    assert missing["lag_ms"] >= 3_000
    assert missing["lag_records"] > 0


def test_a_follower_that_was_stopped_said_so(cluster: Cluster, ottla: Ottla, topic: str) -> None:
    follower = a_follower(cluster, topic)
    cluster.stop(follower)
    with coming_back(cluster, follower):
        missing = seen(ottla, topic, follower)
        shown = ottla("cluster", "status").out
    assert missing["cause"] == "stopped", cluster.last_words()
    assert "when it was being stopped" in shown


@pytest.mark.parametrize("leads", [False, True])
def test_a_broker_that_was_killed_lost_its_session(
    cluster: Cluster, ottla: Ottla, topic: str, leads: bool
) -> None:
    victim = cluster.leader_of(topic) if leads else a_follower(cluster, topic)
    cluster.kill(victim)
    with coming_back(cluster, victim):
        missing = seen(ottla, topic, victim)
        shown = ottla("cluster", "status").out
    assert missing["cause"] == "session_ended"
    assert not missing["is_there"]
    assert f"broker {victim} is not there; it left at " in shown
    assert "when its session with the metadata ended" in shown
