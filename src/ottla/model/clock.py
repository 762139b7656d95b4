"""The clock's interface: the core is handed one, so that a test can turn its hands."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the time of day and the time since some fixed moment."""

    def now_ms(self) -> int:
        """Milliseconds since 1970; may jump when the machine's clock is set."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment; never goes back."""
        ...
