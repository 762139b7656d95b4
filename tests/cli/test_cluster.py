"""`ottla cluster`, `ottla brokers` and `ottla reassign` as a user runs them on three brokers."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.testing.cluster import FAST_SETTINGS, Cluster, Shape
from ottla.testing.zookeeper import why_unavailable
from support.command_line import Ottla, Ran, ottla_here
from support.eventually import eventually

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))
SECONDS_MAX = 90


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")
    with Cluster.of(Shape(settings=FAST_SETTINGS, can_partition=False)) as started:
        yield started


@pytest.fixture
def ottla(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Ottla:
    """In the test's own process: these tests ask often."""
    return ottla_here(cluster.bootstrap_servers, monkeypatch)


def run_ottla(*arguments: str, bootstrap: str) -> Ran:
    """As a user's shell does."""
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**os.environ, "OTTLA_BOOTSTRAP": bootstrap, "NO_COLOR": "1"},
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def held_by(ottla: Ottla, broker: int, topic: str) -> int:
    (described,) = json.loads(ottla("topics", "describe", topic, "--json").out)
    return sum(broker in row["replicas"] for row in described["partitions"])


def test_a_dead_broker_makes_the_cluster_ill_and_its_return_heals_it(
    cluster: Cluster, ottla: Ottla, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    assert ottla("topics", "create", topic, "-p", "3").code == 0
    cluster.wait_until_in_sync()
    well = ottla("cluster", "status")
    assert well.code == 0, well.out
    assert well.out.startswith("Healthy: ")
    assert "(controller)" in well.out
    dead = cluster.leader_of(topic)
    cluster.kill(dead)

    def is_seen() -> bool:
        told = json.loads(ottla("cluster", "status", "--json").out)
        return not told["offline"] and told["under_replicated"] >= 3

    eventually(is_seen, "the dead broker's replicas out of sync", timeout_seconds=60)
    ill = ottla("cluster", "status")
    assert ill.code == 1
    assert ill.out.startswith("Not healthy: ")
    assert f"broker {dead} is not there" in ill.out
    cluster.start_brokers([dead])
    eventually(lambda: ottla("cluster", "status").code == 0, "health", timeout_seconds=60)


def test_too_few_in_sync_for_writing_is_told_apart(
    cluster: Cluster, ottla: Ottla, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    setting = "min.insync.replicas=3"
    assert ottla("topics", "create", topic, "-p", "1", "-c", setting).code == 0
    cluster.wait_until_in_sync()
    (described,) = json.loads(ottla("topics", "describe", topic, "--json").out)
    follower = described["partitions"][0]["replicas"][2]
    cluster.kill(follower)

    def is_under_min() -> bool:
        told = json.loads(ottla("cluster", "status", "--json").out)
        states = {each["topic"]: each["state"] for each in told["ailing"]}
        return states.get(topic) == "under min in sync"

    eventually(is_under_min, "too few in sync", timeout_seconds=60)
    cluster.start_brokers([follower])
    cluster.wait_until_in_sync()
    assert ottla("topics", "delete", topic, "--yes").code == 0


def test_watching_goes_on_until_it_is_interrupted(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "ottla", "cluster", "status", "--watch"]
    with subprocess.Popen(
        [*command, "-b", cluster.bootstrap_servers],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as watching:
        assert "ealthy: " in first_line(watching)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(SECONDS_MAX) == 130


def test_brokers_are_listed(cluster: Cluster, ottla: Ottla) -> None:
    listed = json.loads(ottla("brokers", "list", "--json").out)
    assert [each["id"] for each in listed] == [0, 1, 2]
    assert sum(each["controller"] for each in listed) == 1
    assert ottla("brokers", "list").lines[0].split("\t")[0] == "broker"


def test_a_drained_broker_holds_nothing_and_draining_it_again_does_nothing(
    cluster: Cluster, ottla: Ottla, new_name: Callable[[], str]
) -> None:
    for left in json.loads(ottla("topics", "list", "--internal", "--json").out):
        if left["replicas"] > 2:
            assert ottla("topics", "delete", left["name"], "--yes").code == 0
    topic = new_name()
    assert ottla("topics", "create", topic, "-p", "6", "-r", "2").code == 0
    lines = "".join(f"{number}\n" for number in range(200))
    assert ottla("produce", topic, stdin=lines).code == 0
    before = held_by(ottla, 2, topic)
    assert before > 0
    planned = ottla("brokers", "drain", "2", "--dry-run")
    assert len(json.loads(planned.out)["partitions"]) >= before
    assert held_by(ottla, 2, topic) == before
    drained = ottla("brokers", "drain", "2", "--at-once", "2")
    assert drained.code == 0, drained.err
    assert "holds nothing any more" in drained.out
    assert held_by(ottla, 2, topic) == 0
    assert ottla("brokers", "drain", "2").code == 0
    read = ottla("consume", topic)
    assert sorted(read.lines, key=int) == [str(number) for number in range(200)]


def test_a_broker_that_is_needed_or_unknown_cannot_be_drained(
    ottla: Ottla, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    assert ottla("topics", "create", topic, "-p", "1", "-r", "3").code == 0
    needed = ottla("brokers", "drain", "1")
    assert needed.code == 1
    assert "has 3 replicas, and there are only 2 brokers" in needed.err
    assert ottla("topics", "delete", topic, "--yes").code == 0
    assert "There is no broker 9" in ottla("brokers", "drain", "9").err


def test_a_plan_is_made_executed_and_seen_to_be_done(
    cluster: Cluster, ottla: Ottla, new_name: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_name()
    assert ottla("topics", "create", topic, "-p", "4", "-r", "1").code == 0
    moves = tmp_path / "moves.json"
    moves.write_text(ottla("reassign", "plan", "--topic", topic, "--brokers", "1").out)
    wanted = json.loads(moves.read_text())["partitions"]
    assert wanted
    assert {tuple(row["replicas"]) for row in wanted} == {(1,)}
    before = tmp_path / "before.json"
    began = ottla("reassign", "execute", str(moves), "--save-current", str(before))
    assert began.code == 0, began.err
    eventually(
        lambda: ottla("reassign", "status", str(moves)).code == 0, "the moves", timeout_seconds=60
    )
    assert held_by(ottla, 1, topic) == 4
    assert "No partition is moving." in ottla("reassign", "status").out
    assert ottla("reassign", "status", str(before)).code == 1
    assert "of 0 partitions" in ottla("reassign", "cancel").out


def test_a_wrong_document_is_refused_in_a_sentence(ottla: Ottla) -> None:
    for document, expected in {
        "nonsense": "JSON",
        '{"version": 2, "partitions": []}': "version 2",
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}': "each broker once",
        '{"partitions": [{"topic": "t", "partition": 0}]}': "replicas",
    }.items():
        ran = ottla("reassign", "execute", "-", stdin=document)
        assert ran.code == 2, ran.err
        assert expected in ran.err
    absent = '{"partitions": [{"topic": "absent", "partition": 0, "replicas": [1]}]}'
    ran = ottla("reassign", "execute", "-", stdin=absent)
    assert ran.code == 1
    assert "absent-0 was not moved" in ran.err


def test_a_cluster_for_people_starts_serves_stops_and_comes_back(tmp_path: Path) -> None:
    data = tmp_path / "cluster"
    with a_cluster_at(data, signal.SIGINT) as bootstrap:
        created = run_ottla("topics", "create", "t", bootstrap=bootstrap)
        assert "2 copies" in created.out
        assert run_ottla("cluster", "status", bootstrap=bootstrap).code == 0
    assert (data / "broker-1").is_dir()
    assert run_ottla("topics", "list", "--timeout", "2", bootstrap=bootstrap).code == 3
    with a_cluster_at(data, signal.SIGTERM) as bootstrap:
        assert "t\t" in run_ottla("topics", "list", bootstrap=bootstrap).out


@contextmanager
def a_cluster_at(data: Path, ending: signal.Signals) -> Iterator[str]:
    """`ottla cluster up` until the end; yields where it is."""
    command = [sys.executable, "-m", "ottla", "cluster", "up", "--brokers", "2"]
    with subprocess.Popen(
        [*command, "--data", str(data), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as up:
        line = first_line(up)
        assert "Ottla cluster ready on " in line
        try:
            yield line.split(" ready on ")[1].split(", data in ")[0]
        finally:
            up.send_signal(ending)
            assert up.wait(SECONDS_MAX) == 0


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        if select.select([process.stdout], [], [], 1)[0]:
            return process.stdout.readline()
    return ""


def test_a_local_cluster_does_not_pretend_to_be_reachable_from_elsewhere() -> None:
    ran = run_ottla("cluster", "up", "--listen", "0.0.0.0:9092", bootstrap="127.0.0.1:1")
    assert ran.code == 2
    assert "run `ottla serve` on each machine" in ran.err
