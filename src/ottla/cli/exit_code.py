"""What the `ottla` command returns to the shell."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Documented in docs/cli.md; scripts rely on the numbers."""

    OK = 0
    FAILED = 1
    """The broker refused, or a check found something wrong."""
    USAGE = 2
    """The command line or a setting is wrong."""
    UNREACHABLE = 3
    """No broker answers at the address."""
    BUG = 70
    """A defect of Ottla itself."""
    INTERRUPTED = 130
    """Ctrl-C."""
