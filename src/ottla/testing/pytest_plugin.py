"""Fixtures that every project with Ottla installed has: a broker a test, or one for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla_broker() -> Iterator[Broker]:
    """A fresh broker for this test, with `.bootstrap_servers`, `.clock` and `.faults`."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_session_broker() -> Iterator[Broker]:
    """One broker for the whole run; tests share it and use topics of their own."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker
