"""Runs all that must hold before a change is taken: format, lint, types, layers, tidy, tests.

    python3 tools/check.py                          all of it, in an environment of its own
    python3 tools/check.py --only lint,types        some steps
    python3 tools/check.py --only tests -- -k log   what follows -- goes to pytest
    python3 tools/check.py --long                   with the many of a kind that take long

Needs only Python and pip: the first run makes `.venv-test` and installs the project with its
development tools there. Every step runs even when one before it failed. pytest runs last, shows how
the other steps went, and its closing line is the last line printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import environment

SCRIPTS = ("tools", "bench")
FOLDERS = ("src", "tests", "tools", "bench", "examples")
TEST_PROCESSES = "3"
"""More than the two cores that most machines of CI have: many tests wait."""
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Not for the tests: each of the hundreds of brokers and commands they start would compile all."""
AS_INSTALLED = (
    "tests/clients",
    "tests/properties",
    "tests/unit/broker/test_dispatch.py",
    "tests/unit/net/test_direct_loop.py",
    "tests/unit/net/test_listener.py",
    "tests/unit/net/test_server_connection.py",
    "tests/unit/records",
    "tests/unit/storage",
)
"""Where tests find what compiled modules do otherwise than Python, in their own process."""


@dataclass(frozen=True)
class Step:
    """One check: its name, what it looks at, and the command that does it."""

    name: str
    purpose: str
    command: Callable[[Path], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)


STEPS = (
    Step("format", "ruff format", lambda python: _ruff(python, "format", "--check")),
    Step("lint", "ruff check", lambda python: _ruff(python, "check")),
    Step("types", "mypy --strict on the package", lambda python: _mypy(python)),
    Step("scripts", "mypy --strict on tools and bench", lambda python: _mypy(python, *SCRIPTS)),
    Step("layers", "import-linter", lambda python: [environment.script_of(python, "lint-imports")]),
    Step("tidy", "house rules", lambda python: [str(python), "tools/tidy.py"]),
    Step(
        "compiled",
        "some tests on compiled modules",
        lambda python: [*_pytest(python), "-q", "-m", "not long", *AS_INSTALLED],
        {"OTTLA_PURE": "0"},
    ),
)
NAMES = (*(step.name for step in STEPS), "tests")


def main(arguments: list[str]) -> int:
    """Run the chosen steps and return 0 when all of them passed."""
    options, pytest_arguments = _parse(arguments)
    try:
        python = environment.prepare(options.venv, extras="dev")
    except environment.SetupFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    outcomes = [_run(step, python) for step in STEPS if step.name in options.only]
    passed = all(outcome.startswith("ok") for outcome in outcomes)
    if "tests" in options.only:
        passed &= _run_tests(python, pytest_arguments, outcomes)
    else:
        print("\n".join(["", *outcomes]))
    return 0 if passed else 1


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    own, pytest_arguments = arguments, []
    if "--" in arguments:
        own = arguments[: arguments.index("--")]
        pytest_arguments = arguments[len(own) + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        type=_step_names,
        default=set(NAMES),
        metavar="STEP[,STEP]",
        help=f"of: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--venv",
        type=Path,
        default=environment.ROOT / ".venv-test",
        help="the virtual environment to make or use",
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="run the tests marked long as well: every fault, every planted bug, every topology"
        " alone on Spark; 40 minutes more",
    )
    options = parser.parse_args(own)
    if not options.long:
        pytest_arguments = ["-m", "not long", *pytest_arguments]
    return options, pytest_arguments


def _step_names(text: str) -> set[str]:
    names = {name.strip() for name in text.split(",")}
    unknown = names - set(NAMES)
    if unknown:
        raise argparse.ArgumentTypeError(f"no such step: {', '.join(sorted(unknown))}")
    return names


def _ruff(python: Path, *command: str) -> list[str]:
    folders = [folder for folder in FOLDERS if any((environment.ROOT / folder).rglob("*.py"))]
    return [environment.script_of(python, "ruff"), *command, *folders]


def _mypy(python: Path, *paths: str) -> list[str]:
    return [str(python), "-m", "mypy", "--strict", *paths]


def _run(step: Step, python: Path) -> str:
    """Run a step; show its output only when it failed; return the line that tells how it went."""
    print(f"· {step.name} ({step.purpose}) ", end="", flush=True)
    started = time.monotonic()
    done = subprocess.run(
        step.command(python),
        cwd=environment.ROOT,
        env=_surroundings(step.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    word = "ok" if done.returncode == 0 else "FAILED"
    seconds = time.monotonic() - started
    print(f"{word}, {seconds:.1f} s", flush=True)
    if done.returncode:
        print(done.stdout, flush=True)
    return f"{word:<7}{step.name} ({step.purpose})"


def _run_tests(python: Path, arguments: list[str], outcomes: list[str]) -> bool:
    """Run pytest with its own output; how the other steps went appears above its last line."""
    print("· tests (pytest)", flush=True)
    searched = [str(environment.ROOT / "tools"), os.environ.get("PYTHONPATH", "")]
    told = {
        "PYTHONPATH": os.pathsep.join(filter(None, searched)),
        "OTTLA_CHECKS": "\n".join(outcomes),
    }
    command = [*_pytest(python), "-p", "closing_summary", *arguments]
    done = subprocess.run(command, cwd=environment.ROOT, env=_surroundings(told))
    return done.returncode == 0


def _surroundings(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    return {**kept, **more}


def _pytest(python: Path) -> list[str]:
    # Neighbours stay together: a Spark, a cluster or a broker that they share is started once.
    return [str(python), "-m", "pytest", "-n", TEST_PROCESSES, "--dist", "worksteal"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
