"""Sets Ottla up and runs its main job: a broker on embedded defaults, with a live demonstration.

python3 tools/start.py                   a broker on 127.0.0.1:9092 that shows records going through it
python3 tools/start.py --once            the same, but ends after the demonstration
python3 tools/start.py -- serve ...      any other `ottla` command, in the same environment
"""

from __future__ import annotations

import os
import sys

import environment


def main(arguments: list[str]) -> int:
    """Prepare the environment, then become the `ottla` command."""
    command = arguments[1:] if arguments[:1] == ["--"] else ["demo", *arguments]
    try:
        python = environment.prepare(environment.ROOT / ".venv")
    except environment.SetupFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    os.execv(python, [str(python), "-m", "ottla", *command])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
