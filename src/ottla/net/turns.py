"""Who has more to do than fits into one turn of the loop: each gets a turn, one after the other.

A request that comes alone is answered as soon as it is read. A connection with a long queue of
requests, or a request that is long work by itself, does a part of it, then stands in this line.
Between two rounds of the line the loop serves everybody else. Time is the loop's: in a simulation
it stands still while something works, and the same seed gives the same turns.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
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
        loop = asyncio.get_running_loop()
        end = loop.time() + ROUND_SECONDS
        try:
            for _ in range(len(self._line)):
                self._line.popleft()()
                if loop.time() >= end:
                    break
        finally:
            self._is_running = bool(self._line)
            if self._is_running:
                loop.call_soon(self._run)


class Turn:
    """One turn of a coroutine, and the next: `if turn.is_over: await turn.give_way()`."""

    __slots__ = ("_end", "_loop", "_turns")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + TURN_SECONDS

    @property
    def is_over(self) -> bool:
        return self._loop.time() >= self._end

    async def give_way(self) -> None:
        """Waits until everybody else in the line had a turn."""
        turn: asyncio.Future[None] = self._loop.create_future()

        def go_on() -> None:
            if not turn.done():  # its client may have gone
                turn.set_result(None)

        self._turns.wait(go_on)
        await turn
        self._end = self._loop.time() + TURN_SECONDS
