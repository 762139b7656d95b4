"""Fixtures every battery shares: a broker to talk to, and names nobody else uses.

The same tests run on any broker: with OTTLA_TEST_BOOTSTRAP=host:port in the environment they
talk to that one (Apache Kafka, say), and tests that must kill or inspect a process are skipped.
"""

import itertools
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ottla import compiled

# Tests replace parts of modules, which nobody can in compiled ones. The brokers and commands they
# start as processes of their own run as they were installed; OTTLA_PURE=0 has the tests do so too.
if os.environ.get("OTTLA_PURE") != "0":
    compiled.MODULES.decline()

sys.path.insert(0, str(Path(__file__).parent))  # makes `support` importable from every battery

from support.broker_process import BrokerProcess
from support.wire import Connection

# A run that decides whether a change is taken draws the same examples each time; others explore.
settings.register_profile("ottla", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("ottla")

# What a broker does slowly on purpose, for the sake of many members, and no test here is about.
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
}
SLOW_SECONDS_MAX = 600
_numbers = itertools.count()
_run = uuid.uuid4().hex[:8]


def external_bootstrap() -> str | None:
    """The address given by the environment, or None where the tests start their own broker."""
    return os.environ.get("OTTLA_TEST_BOOTSTRAP") or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests and those on Spark have longer until they count as hanging: the machine may be
    busy with others."""
    for item in items:
        is_slow = item.get_closest_marker("slow") or "spark" in getattr(item, "fixturenames", ())
        if is_slow and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS_MAX))


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess | None]:
    """One broker process for all tests of a worker; None when an outside broker is tested."""
    if external_bootstrap():
        yield None
        return
    broker = BrokerProcess(tmp_path_factory.mktemp("shared-broker"), settings=QUICK_GROUPS)
    broker.start()
    try:
        yield broker
    finally:
        broker.close()


@pytest.fixture(scope="session")
def bootstrap(shared_broker: BrokerProcess | None) -> str:
    """host:port of the broker under test."""
    if shared_broker is None:
        return str(external_bootstrap())
    return shared_broker.bootstrap_servers


@pytest.fixture
def connection(bootstrap: str) -> Iterator[Connection]:
    """A raw socket to the broker under test."""
    with Connection(bootstrap) as opened:
        yield opened


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes topic names that no other test, worker or run uses."""
    stem = request.node.originalname.removeprefix("test_")[:40]
    return lambda: f"{stem}-{_run}-{next(_numbers)}"


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Starts brokers of this test's own: `own_broker(settings={...}, data=path)`."""
    if external_bootstrap():
        pytest.skip("needs a broker process of its own")
    started: list[BrokerProcess] = []

    def start(*, settings: dict[str, str] | None = None, data: Path | None = None) -> BrokerProcess:
        broker = BrokerProcess(data or tmp_path / f"data-{len(started)}", settings=settings)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.close()
