"""A real broker for tests: started in a blink, with a clock to turn and faults to order.

    from ottla.testing import Broker

    def test_orders_are_counted():
        with Broker() as broker:
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            ...

Names are imported when first used: pytest loads the plugin beside them in every project that has
Ottla installed, and most test runs there never start a broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.testing.broker import Broker
    from ottla.testing.child import BrokerFailedToStart, ChildBroker
    from ottla.testing.clock import MovableClock
    from ottla.testing.cluster import Cluster
    from ottla.testing.faults import Faults
    from ottla.testing.zookeeper import ZooKeeper

__all__ = [
    "Broker",
    "BrokerFailedToStart",
    "ChildBroker",
    "Cluster",
    "Faults",
    "MovableClock",
    "ZooKeeper",
]

_HOMES: Final = {
    "Broker": "broker",
    "BrokerFailedToStart": "child",
    "ChildBroker": "child",
    "Cluster": "cluster",
    "Faults": "faults",
    "MovableClock": "clock",
    "ZooKeeper": "zookeeper",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
