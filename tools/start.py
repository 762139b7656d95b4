"""Sets Ottla up and runs its main job: a broker on embedded defaults, and a pipeline on Spark.

    python3 tools/start.py                 a broker on 127.0.0.1:9092 and a pipeline, shown at work
    python3 tools/start.py --once          the same, but ends when the results were seen
    python3 tools/start.py --no-spark      the broker only: nothing large is installed
    python3 tools/start.py -- serve ...    any other `ottla` command, in the same environment

Needs only Python and pip: the first run makes `.venv` and installs the project there. Java is not
needed: it comes by pip, with Spark.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import environment

FOLDER = environment.ROOT / ".venv"
SPARK = "Ottla, Spark and its Java, about 580 MB to download and 900 MB on the disk"
ON_SPARK = ("demo", "streams")


def main(arguments: list[str]) -> None:
    """Prepare the environment, then become the `ottla` command."""
    command = arguments[1:] if arguments[:1] == ["--"] else ["demo", *arguments]
    on_spark = command[:1] and command[0] in ON_SPARK and not {"--no-spark", "--help"} & {*command}
    try:
        environment.check_python()
        python = _prepared_with_spark() if on_spark else environment.prepare(FOLDER)
    except environment.SetupFailed as problem:
        sys.exit(str(problem))
    os.execv(python, [str(python), "-m", "ottla", *command])


def _prepared_with_spark() -> Path:
    try:
        return environment.prepare(FOLDER, extras="spark", large=SPARK)
    except environment.SetupFailed as problem:
        print(f"{problem}\nGoing on without Spark.", file=sys.stderr)
        return environment.prepare(FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
