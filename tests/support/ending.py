"""Lets a program of a test end in good order on SIGTERM."""

import signal
from types import FrameType


class Ending:
    """Whether SIGTERM has come."""

    def __init__(self) -> None:
        self._has_come = False
        signal.signal(signal.SIGTERM, self._come)

    def _come(self, _number: int, _frame: FrameType | None) -> None:
        self._has_come = True

    def __call__(self) -> bool:
        return self._has_come
