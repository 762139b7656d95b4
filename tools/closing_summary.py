"""A pytest plugin of one hook: shows how the steps before the tests went, above pytest's last line.

`tools/check.py` loads it and hands the outcomes over in the environment variable OTTLA_CHECKS.
"""

from __future__ import annotations

import os

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the outcomes of the other checks, where there are any."""
    outcomes = os.environ.get("OTTLA_CHECKS", "").splitlines()
    if outcomes:
        terminalreporter.section("the other checks")
        for outcome in outcomes:
            terminalreporter.line(outcome, red=outcome.startswith("FAILED"))
