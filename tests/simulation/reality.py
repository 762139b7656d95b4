"""Takes the process's time, chance and threads out of real hands for as long as a world runs.

The programs under test ask `time`, `random`, `uuid` and thread pools as ever; what answers them is
the loop and the seed. Each simulated process may have a wrong clock of its own.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from simulation.loop import PROCESS, SimulatedLoop

BEGINNING_SECONDS: Final = 1_800_000_000.0
"""What the clocks on the walls say when a world begins."""


@contextmanager
def replaced(loop: SimulatedLoop, seed: int) -> Iterator[None]:
    """While it lasts, only the loop moves the time and only the seed decides what is random."""

    def wall() -> float:
        process = PROCESS.get()
        ahead = process.clock_ahead_seconds if process is not None else 0.0
        return BEGINNING_SECONDS + loop.time() + ahead

    def shut_down(executor: ThreadPoolExecutor, *_: Any, **__: Any) -> None:
        loop.finish_work(executor)

    state = random.getstate()
    collects = gc.isenabled()
    replacements: list[tuple[Any, str, Any]] = [
        (time, "time", wall),
        (time, "time_ns", lambda: int(wall() * 1e9)),
        (time, "monotonic", loop.time),
        (time, "monotonic_ns", lambda: int(loop.time() * 1e9)),
        (uuid, "uuid4", lambda: uuid.UUID(int=random.getrandbits(128), version=4)),
        (os, "urandom", random.randbytes),
        (ThreadPoolExecutor, "shutdown", shut_down),
        (sys, "unraisablehook", lambda _: None),
    ]
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    gc.collect()
    gc.disable()
    random.seed(seed)
    for owner, name, value in replacements:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)
        random.setstate(state)
        if collects:
            gc.enable()
