"""What a state store is to hold, as data: its kind, serdes and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ottla.streams.serdes import Serde, SerdeChoice, serde_for
from ottla.streams.windows import Duration, milliseconds


class StoreKind(Enum):
    """How keys of a store are laid out, and so what can be asked of it."""

    TABLE = "table"
    """A value with its timestamp by key."""
    KEY_VALUE = "key-value"
    """A value by key, for processors of the user's own."""
    WINDOW = "window"
    """A value with its timestamp by key and window start."""
    SESSION = "session"
    """A value by key, first and last time."""
    JOIN_WINDOW = "join-window"
    """All values by key and time."""
    PENDING_JOIN = "pending-join"
    """Values that have no partner yet, by time, side and key."""
    SUPPRESSION = "suppression"
    """Held updates, by the time they are let go."""
    SUBSCRIPTION = "subscription"
    """Who wants to know of a foreign key."""
    PROGRESS = "progress"
    """The times a task has seen, and its timers."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """One store of a topology. Each task has its part of it; a global one is the same to all."""

    name: str
    kind: StoreKind
    key: Serde
    value: Serde
    retention_ms: int | None = None
    size_ms: int | None = None
    logged: bool = True
    is_global: bool = False


def key_value_store(
    name: str, *, key: SerdeChoice = "str", value: SerdeChoice = "json", logged: bool = True
) -> StoreSpec:
    """A store for `process`: a value by key."""
    return StoreSpec(name, StoreKind.KEY_VALUE, serde_for(key), serde_for(value), logged=logged)


def window_store(
    name: str,
    size: Duration,
    *,
    retention: Duration,
    key: SerdeChoice = "str",
    value: SerdeChoice = "json",
) -> StoreSpec:
    """A store for `process`: a value by key and window start, kept for `retention`."""
    size_ms = milliseconds(size, "a window's size", least=1)
    return StoreSpec(
        name,
        StoreKind.WINDOW,
        serde_for(key),
        serde_for(value),
        retention_ms=milliseconds(retention, "retention", least=size_ms),
        size_ms=size_ms,
    )
