"""The machine's clock."""

from __future__ import annotations

import time


class SystemClock:
    """Real time."""

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(time.monotonic() * 1000)
