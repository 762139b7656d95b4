"""`ottla` on a machine whose clock is wrong: `python shifted_broker.py MILLISECONDS serve ...`.

Only the time of day is moved. What measures spans has a clock that nobody can set.
"""

from __future__ import annotations

import sys


def shift(milliseconds: int) -> None:
    """Lets the broker's clock go ahead by so much, or behind."""
    from ottla.broker.system_clock import SystemClock

    right = SystemClock.now_ms

    def now_ms(clock: SystemClock) -> int:
        return right(clock) + milliseconds

    SystemClock.now_ms = now_ms  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.path.pop(0)  # this directory: its modules are not meant to be found by their bare names
    shift(int(sys.argv.pop(1)))
    from ottla.cli.main import main

    main()
