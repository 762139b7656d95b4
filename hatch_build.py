"""Compiles the loops over records where a C compiler is at hand, and else leaves them as Python.

Hatchling runs this while it builds a wheel. An installation never fails for it: without a compiler
nothing is downloaded and nothing tried; where compiling fails, the wheel is the one that a machine
without a compiler gets. OTTLA_PURE=1 asks for that one. See docs/decisions/0009.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "ottla/records/accelerated"
SOURCES = ("decoding", "encoding")
REQUIREMENTS = ["cython>=3.1", "setuptools>=68"]


def can_compile() -> bool:
    """Whether there are a C compiler and Python's header files, and nobody asked to do without."""
    if os.environ.get("OTTLA_PURE") == "1" or os.name != "posix":
        return False
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return bool(compiler) and shutil.which(compiler[0]) is not None and headers.exists()


def compile_loops(root: Path, target: Path) -> list[Path]:
    """The extension modules, built below `target`."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extensions = [
        Extension(
            f"{FOLDER.replace('/', '.')}.{name}_compiled",
            [str(_signed(root / "src" / FOLDER / f"{name}.py", target))],
            extra_compile_args=["-O3", "-g0"],
        )
        for name in SOURCES
    ]
    command = build_ext(
        Distribution(
            {"ext_modules": cythonize(extensions, build_dir=str(target / "c"), quiet=True)}
        )
    )
    command.build_lib = str(target / "lib")
    command.build_temp = str(target / "objects")
    command.parallel = len(SOURCES)
    command.ensure_finalized()
    command.run()
    return [Path(output) for output in command.get_outputs()]


def _signed(source: Path, target: Path) -> Path:
    """A copy of a source that knows its own digest, so that a test can tell old from new."""
    copy = target / source.name
    text = source.read_bytes()
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(text + f'SOURCE_DIGEST = "{sha256(text).hexdigest()}"\n'.encode())
    return copy


class CompiledLoops(BuildHookInterface):
    """Adds the extension modules to a wheel, or puts them beside the sources of an editable one."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """What compiling needs, where there is something to compile with."""
        return list(REQUIREMENTS) if can_compile() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling what there is now."""
        if not can_compile():
            return
        root = Path(self.root)
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-build-"))
        try:
            modules = compile_loops(root, self._folder)
        except (Exception, SystemExit) as problem:
            self.app.display_warning(f"Ottla is installed without compiled loops: {problem}")
            return
        for module in modules:
            if version == "editable":
                shutil.copy2(module, root / "src" / FOLDER / module.name)
            else:
                build_data["force_include"][str(module)] = f"{FOLDER}/{module.name}"
                build_data["pure_python"] = False
                build_data["infer_tag"] = True

    def finalize(self, *_: object) -> None:
        """Remove what was built on the way, now that the wheel is written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
