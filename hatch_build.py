"""Compiles what runs most often where a C compiler is at hand, and else leaves it as Python.

Hatchling runs this while it builds a wheel. Two things are compiled, each from the sources that run
where it is not: the loops over records by Cython (docs/decisions/0009), and the path of a request
through the broker by mypyc (docs/decisions/0014). An installation never fails for it: without a
compiler nothing is downloaded and nothing tried; where compiling fails, the wheel goes without.
OTTLA_PURE=1 asks for a wheel without.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LOOPS_FOLDER = "ottla/records/accelerated"
LOOPS = ("decoding", "encoding")
PATH_FOLDER = "ottla/compiled"
LISTING = f"made-from-{sys.implementation.cache_tag}.txt"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
REQUIREMENTS = ["cython>=3.1", "setuptools>=68", "mypy>=1.14"]

Built = dict[str, Path]
"""Where each file belongs in the package, and where it was built."""


def can_compile() -> bool:
    """Whether there are a C compiler and Python's header files, and nobody asked to do without."""
    if os.environ.get("OTTLA_PURE") == "1" or os.name != "posix":
        return False
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return bool(compiler) and shutil.which(compiler[0]) is not None and headers.exists()


def compile_loops(root: Path, target: Path) -> Built:
    """The loops over records."""
    from Cython.Build import cythonize
    from setuptools import Extension

    extensions = [
        Extension(
            f"{LOOPS_FOLDER.replace('/', '.')}.{name}_compiled",
            [str(_signed(root / "src" / LOOPS_FOLDER / f"{name}.py", target))],
            extra_compile_args=["-O3", "-g0"],
        )
        for name in LOOPS
    ]
    modules = _build(cythonize(extensions, build_dir=str(target / "c"), quiet=True), target)
    return {f"{LOOPS_FOLDER}/{module.name}": module for module in modules}


def _signed(source: Path, target: Path) -> Path:
    """A copy of a source that knows its own digest, so that a test can tell old from new."""
    copy = target / source.name
    text = source.read_bytes()
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(text + f'SOURCE_DIGEST = "{sha256(text).hexdigest()}"\n'.encode())
    return copy


def compile_path(root: Path, target: Path) -> Built:
    """The modules a request passes through, and the list of what they were made from.

    mypyc makes one library of each group, and a small module beside it for every one of its own.
    """
    from mypyc.build import mypycify

    groups = groups_of_path(root)
    copy = target / "src"
    shutil.copytree(root / "src", copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    with contextlib.chdir(copy):  # mypy names modules by where they are
        extensions = mypycify(
            [*options, *map(_source, chain.from_iterable(groups.values()))],
            opt_level="1",  # as fast as 2 here, and made in half the time
            debug_level="0",
            target_dir=str(target / "c"),
            separate=[
                ([*map(_source, modules)], f"ottla.compiled.{group}")
                for group, modules in groups.items()
            ],
        )
        modules = _build(extensions, target)
    listing = target / LISTING
    listing.write_text(
        "".join(
            f"{name} {crc32((copy / _source(name)).read_bytes())}\n"
            for name in chain.from_iterable(groups.values())
        )
    )
    built = {_full_name(module.relative_to(target / "lib")): module for module in modules}
    return {
        f"{PATH_FOLDER}/{name}": file for name, file in {**built, listing.name: listing}.items()
    }


def groups_of_path(root: Path) -> dict[str, list[str]]:
    """The names of the modules that mypyc compiles, by the library they are in."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    groups: dict[str, list[str]] = project["tool"]["ottla"]["compiled"]
    return {group: [f"ottla.{name}" for name in names] for group, names in groups.items()}


def _source(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _full_name(module: Path) -> str:
    """What a module's file is called in the folder that holds them all."""
    return ".".join(module.parts).removeprefix("ottla.compiled.")


def _forget_path(root: Path) -> None:
    """Remove what an earlier editable install has compiled; first the list that has it used."""
    folder = root / "src" / PATH_FOLDER
    (folder / LISTING).unlink(missing_ok=True)
    for module in folder.glob(f"*{SUFFIX}"):
        module.unlink()


def _build(extensions: list[Any], target: Path) -> list[Path]:
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    command = build_ext(Distribution({"ext_modules": extensions}))
    command.build_lib = str(target / "lib")
    command.build_temp = str(target / "objects")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    return [Path(output) for output in command.get_outputs()]


class CompiledModules(BuildHookInterface):
    """Adds what was built to a wheel, or puts it into the source tree of an editable install."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """What compiling needs, where there is something to compile with."""
        if not can_compile():
            return []
        # mypyc asks mypy for the types of everything, and that asks the libraries.
        return [*REQUIREMENTS, *self.metadata.core.dependencies]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling what there is now."""
        if version == "editable":
            _forget_path(Path(self.root))
        if not can_compile():
            return
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-build-"))
        for what, compile_it in (("loops", compile_loops), ("request path", compile_path)):
            for name, file in self._compiled(what, compile_it).items():
                if version == "editable":
                    shutil.copy2(file, Path(self.root) / "src" / name)
                else:
                    build_data["force_include"][str(file)] = name
                    build_data["pure_python"] = False
                    build_data["infer_tag"] = True

    def _compiled(self, what: str, compile_it: Callable[[Path, Path], Built]) -> Built:
        assert self._folder is not None, "it is made before anything is compiled"
        target = self._folder / what.replace(" ", "-")
        target.mkdir()
        try:
            return compile_it(Path(self.root), target)
        except (Exception, SystemExit) as problem:
            self.app.display_warning(f"Ottla is installed without compiled {what}: {problem}")
            return {}

    def finalize(self, *_: object) -> None:
        """Remove what was built on the way, now that the wheel is written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
