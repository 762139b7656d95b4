"""Ottla: the Kafka platform for Python people.

`ottla.Producer`, `ottla.Consumer` and `ottla.Admin` are for threads and scripts, `ottla.aio` has
the same for asyncio. They are imported when first used, so that `import ottla` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.clients.blocking.admin import Admin as Admin
    from ottla.clients.blocking.consumer import Consumer as Consumer
    from ottla.clients.blocking.producer import Producer as Producer

__version__ = "0.1.0"

_HOMES = {
    "Admin": "ottla.clients.blocking.admin",
    "Consumer": "ottla.clients.blocking.consumer",
    "Producer": "ottla.clients.blocking.producer",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
