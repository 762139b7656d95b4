"""Who has more to do than fits into one turn of the loop: each gets a turn, one after the other.

A request that comes alone is answered as soon as it is read. A connection with a long queue of
requests, or a request that is long work by itself, does a part of it, then stands in this line.
Between two rounds of the line the loop serves everybody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

TURN_SECONDS: Final = 0.002
"""After so long, whoever has more to do goes to the end of the line."""
ROUND_SECONDS: Final = 0.01
"""After so long the line stops, and the loop looks at the sockets again."""


class Turns:
    """The line."""

    def __init__(self) -> None:
        self._line: deque[Callable[[], None]] = deque()
        self._is_running = False

    @property
    def is_anybody_waiting(self) -> bool:
        return bool(self._line)

    def wait(self, go_on: Callable[[], None]) -> None:
        """Stands in line; `go_on` is called in its turn and should return within one."""
        self._line.append(go_on)
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().call_soon(self._run)

    def begin(self) -> Turn:
        """The first turn of a work that may be long."""
        return Turn(self)

    def _run(self) -> None:
        end = perf_counter() + ROUND_SECONDS
        try:
            for _ in range(len(self._line)):
                self._line.popleft()()
                if perf_counter() >= end:
                    break
        finally:
            self._is_running = bool(self._line)
            if self._is_running:
                asyncio.get_running_loop().call_soon(self._run)


class Turn:
    """One turn of a coroutine, and the next: `if turn.is_over: await turn.give_way()`."""

    __slots__ = ("_end", "_turns")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._end = perf_counter() + TURN_SECONDS

    @property
    def is_over(self) -> bool:
        return perf_counter() >= self._end

    async def give_way(self) -> None:
        """Waits until everybody else in the line had a turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go_on() -> None:
            if not turn.done():  # its client may have gone
                turn.set_result(None)

        self._turns.wait(go_on)
        await turn
        self._end = perf_counter() + TURN_SECONDS
