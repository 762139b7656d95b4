"""How Spark starts its Python workers on this machine.

Spark puts a zip with PySpark's sources before everything else on the path of its workers. Python
keeps no compiled form of what it imports from a zip, so each of the half a dozen processes that a
query begins with compiles PySpark anew, the better part of a second each. PySpark from pip is
installed, and compiled, beside it: a worker that does not see the zip takes that one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

_LAUNCHER: Final = """#!/bin/sh
path=
IFS=:
for entry in $PYTHONPATH; do
    case "$entry" in
        "{zips}"/*.zip) ;;
        *) path="${{path:+$path:}}$entry" ;;
    esac
done
unset IFS
export PYTHONPATH="$path"
exec "{python}" "$@"
"""


def worker_python() -> str:
    """What Spark is to call for Python: this one, by way of a script that leaves the zip out."""
    import pyspark

    zips = Path(pyspark.__file__).parent / "python" / "lib"
    if not (zips / "pyspark.zip").exists():
        return sys.executable
    home = Path(tempfile.mkdtemp(prefix="ottla-python-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "python3"
    launcher.write_text(_LAUNCHER.format(zips=zips, python=sys.executable))
    launcher.chmod(0o755)
    # There are machines on which nothing in the temporary directory may be run.
    return str(launcher) if os.access(launcher, os.X_OK) else sys.executable
