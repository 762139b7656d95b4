"""Addresses are tried in their order, and one that hangs holds nobody up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from ottla.clients.address import Address
from ottla.clients.broker_connection import BrokerConnection
from ottla.clients.broker_search import BrokerSearch, search_broker
from ottla.clients.versions import BrokerVersions
from ottla.net.client_connection import ConnectionLost

FIRST, SECOND, THIRD = (Address("host", port) for port in (1, 2, 3))
AT_ONCE_S = 0.001
NEVER_S = 3600.0


@dataclass(frozen=True)
class Opened:
    """As much of a connection as is looked at."""

    address: Address
    versions: BrokerVersions


@dataclass
class Network:
    """What is at each address: a connection, an error, or None for what hangs, until another
    is tried."""

    places: dict[Address, Opened | Exception | None]
    thaws_after: Address | None = None
    tried: list[Address] = field(default_factory=list)
    given_up: list[Address] = field(default_factory=list)
    is_thawed: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self, address: Address) -> BrokerConnection:
        self.tried.append(address)
        if address == self.thaws_after:
            self.is_thawed.set()
        there = self.places[address]
        if there is None:
            try:
                await self.is_thawed.wait()
            except asyncio.CancelledError:
                self.given_up.append(address)
                raise
            there = a_broker(address)
        if isinstance(there, Exception):
            raise there
        return cast(BrokerConnection, there)

    def search(self, patience_s: float) -> BrokerSearch:
        return asyncio.run(search_broker(self.places, self.connect, patience_s=patience_s))


def a_broker(address: Address, *, is_silent: bool = False) -> Opened:
    return Opened(address, BrokerVersions(str(address), {}, is_assumed=is_silent))


def test_the_first_that_answers_is_found_and_the_rest_left_alone() -> None:
    lost = ConnectionLost(str(FIRST))
    network = Network({FIRST: lost, SECOND: a_broker(SECOND), THIRD: a_broker(THIRD)})
    search = network.search(NEVER_S)
    assert search.found is network.places[SECOND]
    assert search.failed == [(FIRST, lost)]
    assert network.tried == [FIRST, SECOND]


def test_one_that_hangs_is_passed_over_and_given_up() -> None:
    network = Network({FIRST: None, SECOND: a_broker(SECOND)})
    assert network.search(AT_ONCE_S).found is network.places[SECOND]
    assert network.given_up == [FIRST]


def test_one_that_is_only_slow_is_found_where_no_other_answers() -> None:
    network = Network({FIRST: None, SECOND: ConnectionLost(str(SECOND))}, thaws_after=SECOND)
    found = network.search(AT_ONCE_S).found
    assert found is not None
    assert found.address == FIRST


def test_one_that_does_not_say_its_versions_is_the_last_resort() -> None:
    silent, other = a_broker(FIRST, is_silent=True), a_broker(SECOND, is_silent=True)
    search = Network({FIRST: silent, SECOND: other}).search(NEVER_S)
    assert (search.found, search.silent) == (None, silent)
    knowing = a_broker(SECOND)
    assert Network({FIRST: silent, SECOND: knowing}).search(NEVER_S).found is knowing


def test_an_error_of_another_kind_ends_the_search() -> None:
    network = Network({FIRST: None, SECOND: ZeroDivisionError(), THIRD: a_broker(THIRD)})
    with pytest.raises(ZeroDivisionError):
        network.search(AT_ONCE_S)
    assert network.given_up == [FIRST]
    assert THIRD not in network.tried


def test_without_addresses_nothing_is_found() -> None:
    assert Network({}).search(NEVER_S) == BrokerSearch()
