"""Makes a virtual environment with Ottla in it, or finds the one made before, by stdlib only.

Both commands of the README start here. An environment is made once and used again as long as
what is built, the Python version and the wanted extras stay the same; a stamp file tells.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON_OLDEST = (3, 11)
STAMP_NAME = ".ottla-stamp"
LOOPS = "src/ottla/records/accelerated/*.py"


class SetupFailed(Exception):
    """The environment could not be made; the message says what to do."""


def check_python() -> None:
    """Raise SetupFailed where this Python is too old."""
    if sys.version_info < PYTHON_OLDEST:
        wanted = ".".join(map(str, PYTHON_OLDEST))
        raise SetupFailed(
            f"Ottla needs Python {wanted} or newer; this is {sys.version.split()[0]}."
        )


def prepare(folder: Path, *, extras: str = "", large: str = "") -> Path:
    """Return the Python of an environment in `folder` that has the project and `extras` in it.

    `large` says what is long in coming; pip then shows how far it is.
    """
    check_python()
    python = python_of(folder)
    stamp = folder / (f"{STAMP_NAME}-{extras}" if extras else STAMP_NAME)
    fingerprint = _fingerprint()
    enough = [stamp] if extras else folder.glob(f"{STAMP_NAME}*")  # extras come on top of all else
    if python.exists() and any(s.exists() and s.read_text() == fingerprint for s in enough):
        return python
    if not _is_usable(python):
        _say(f"making a virtual environment in {folder.name}")
        _make(folder)
    what = large or "Ottla and what it needs"
    _say(f"installing {what} (once, some minutes; later runs start at once)")
    _install(python, f"{ROOT}[{extras}]" if extras else str(ROOT), is_quiet=not large)
    stamp.write_text(fingerprint)
    return python


def python_of(folder: Path) -> Path:
    """The interpreter of the environment in `folder`."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def script_of(python: Path, name: str) -> str:
    """The path of an installed command, beside that environment's interpreter."""
    return str(python.parent / name)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", ROOT / "hatch_build.py", *_compiled()):
        digest.update(path.read_bytes())
    digest.update(f"{sys.version}|{ROOT}".encode())
    return digest.hexdigest()


def _compiled() -> list[Path]:
    """What hatch_build.py compiles: an environment with an older build of it is made anew."""
    import tomllib  # not there in a Python that is too old, which has been said by now

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    modules = chain.from_iterable(project["tool"]["ottla"]["compiled"].values())
    files = (ROOT / f"src/ottla/{module.replace('.', '/')}.py" for module in modules)
    return [*sorted(ROOT.glob(LOOPS)), *files]


def _is_usable(python: Path) -> bool:
    """Whether the environment runs at all, on the Python version that runs this script."""
    if not python.exists():
        return False
    asked = "import sys; print(sys.version_info[:2])"
    answer = subprocess.run([str(python), "-c", asked], capture_output=True, text=True)
    return answer.returncode == 0 and answer.stdout.strip() == str(sys.version_info[:2])


def _make(folder: Path) -> None:
    """Make an empty environment; without its own pip where this Python cannot provide one."""
    command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    if subprocess.run(command, capture_output=True).returncode == 0:
        return
    bare = subprocess.run([*command, "--without-pip"], capture_output=True, text=True)
    if bare.returncode:
        raise SetupFailed(
            f"python -m venv failed: {bare.stderr.strip() or bare.stdout.strip()}\n"
            "On Debian and Ubuntu, `apt install python3-venv` brings what is missing."
        )


def _install(python: Path, requirement: str, *, is_quiet: bool) -> None:
    """Install the project, editable, with the environment's pip or else with the system's."""
    own = [str(python), "-m", "pip"]
    has_own = subprocess.run([*own, "--version"], capture_output=True).returncode == 0
    pip = own if has_own else [sys.executable, "-m", "pip", "--python", str(python)]
    options = ["--disable-pip-version-check", *(["--quiet"] if is_quiet else [])]
    if subprocess.run([*pip, "install", *options, "--editable", requirement]).returncode:
        raise SetupFailed("pip could not install the project; its own words are above.")


def _say(sentence: str) -> None:
    print(f"· {sentence}", flush=True)
