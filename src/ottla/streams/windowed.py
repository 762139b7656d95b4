"""The key of a windowed result: which key, and which stretch of time."""

from __future__ import annotations

from typing import Any, NamedTuple


class Windowed(NamedTuple):
    """A key within a window. Tumbling and hopping windows exclude their end, others include it."""

    key: Any
    start_ms: int
    end_ms: int
