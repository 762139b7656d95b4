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

import environment

SPARK = "Spark and its Java, about 580 MB to download and 900 MB on the disk"
ON_SPARK = ("demo", "streams")


def main(arguments: list[str]) -> None:
    """Prepare the environment, then become the `ottla` command."""
    command = arguments[1:] if arguments[:1] == ["--"] else ["demo", *arguments]
    folder = environment.ROOT / ".venv"
    try:
        python = environment.prepare(folder)
    except environment.SetupFailed as problem:
        sys.exit(str(problem))
    if command[:1] and command[0] in ON_SPARK and not {"--no-spark", "--help"} & {*command}:
        try:
            environment.prepare(folder, extras="spark", large=SPARK)
        except environment.SetupFailed as problem:
            print(f"{problem}\nGoing on without Spark.", file=sys.stderr)
    os.execv(python, [str(python), "-m", "ottla", *command])


if __name__ == "__main__":
    main(sys.argv[1:])
