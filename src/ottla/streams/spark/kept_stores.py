"""Which stores of a sub-topology outlive a micro-batch, and which of them have a changelog."""

from __future__ import annotations

from ottla.streams.engine.task import progress_store
from ottla.streams.operators import Process
from ottla.streams.store_spec import StoreSpec
from ottla.streams.topology import Subtopology


def has_state(part: Subtopology) -> bool:
    """Whether its tasks have anything to remember."""
    kept = any(not store.is_global for store in part.stores)
    return kept or any(isinstance(node.operator, Process) for node in part.nodes)


def logged_stores(part: Subtopology) -> tuple[StoreSpec, ...]:
    """Those with a changelog; among them the one in which a task keeps its numbers."""
    if not has_state(part):
        return ()
    stores = (progress_store(part), *part.stores)
    return tuple(store for store in stores if store.logged and not store.is_global)
