"""How a command that runs for long is ended: by Ctrl-C, SIGTERM or a closed terminal."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from ottla.cli.exit_code import ExitCode

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """Whether somebody wants the command to end.

    While something starts, that interrupts it (KeyboardInterrupt). From `work_begins` on it is only
    noted, for the command to stop in order. A second time ends the process at once.
    """

    __slots__ = ("_is_starting", "is_wanted")

    def __init__(self) -> None:
        self.is_wanted = False
        self._is_starting = True

    def listen(self) -> Ending:
        """Takes the signals over, from whoever had them; Spark takes Ctrl-C when it starts."""
        for each in _SIGNALS:
            signal.signal(each, self._hear)
        return self

    def work_begins(self) -> None:
        """From now on the command looks at `is_wanted` by itself."""
        self._is_starting = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.is_wanted:
            os._exit(ExitCode.INTERRUPTED)
        self.is_wanted = True
        logging.disable(logging.CRITICAL)  # what breaks now breaks because it is ended
        if self._is_starting:
            raise KeyboardInterrupt


@contextmanager
def signals_handled(
    signals: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """The handler hears these signals meanwhile; afterwards whoever did before."""
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, earlier in before.items():
            signal.signal(each, earlier)
