"""A broker to be mistreated, and proof after every test that it took no harm."""

from collections.abc import Callable, Iterator

import pytest

from support.broker_process import BrokerProcess
from support.good_client import GoodClient

RESIDENT_BYTES_MAX = 300 << 20
TRACEBACK_SHOWN_MAX = 3_000


@pytest.fixture
def good_client(bootstrap: str, new_name: Callable[[], str]) -> Iterator[GoodClient]:
    """A client that works all the time and must not be disturbed."""
    with GoodClient(bootstrap, new_name()) as client:
        yield client
        client.still_works()


@pytest.fixture(autouse=True)
def unharmed(shared_broker: BrokerProcess | None) -> Iterator[None]:
    """After each test the broker runs, has logged no traceback and holds little memory."""
    said_before = len(shared_broker.errors()) if shared_broker else 0
    yield
    if shared_broker is None:
        return
    assert shared_broker.is_alive
    said = shared_broker.errors()[said_before:]
    trouble = said[said.find("Traceback") :][:TRACEBACK_SHOWN_MAX] if "Traceback" in said else ""
    assert not trouble, f"the broker logged {said.count('Traceback')} tracebacks: {trouble}"
    assert shared_broker.resident_bytes() < RESIDENT_BYTES_MAX
