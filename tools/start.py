"""Sets Ottla up and runs its main job: a broker on embedded defaults, with a live demonstration.

    python3 tools/start.py                 a broker on 127.0.0.1:9092, shown at work, kept running
    python3 tools/start.py --once          the same, but ends after the demonstration
    python3 tools/start.py -- serve ...    any other `ottla` command, in the same environment

Needs only Python and pip: the first run makes `.venv` and installs the project there.
"""

from __future__ import annotations

import os
import sys

import environment


def main(arguments: list[str]) -> None:
    """Prepare the environment, then become the `ottla` command."""
    command = arguments[1:] if arguments[:1] == ["--"] else ["demo", *arguments]
    try:
        python = environment.prepare(environment.ROOT / ".venv")
    except environment.SetupFailed as problem:
        sys.exit(str(problem))
    os.execv(python, [str(python), "-m", "ottla", *command])


if __name__ == "__main__":
    main(sys.argv[1:])
