"""Imports modules in their compiled form, where Ottla was installed with a C compiler.

`hatch_build.py` turns the modules that `pyproject.toml` names into C, from the same sources, and
puts them into this folder with a list of what they were made from.

What must stay true:
1. All of them are imported compiled, or none: they know the insides of each other.
2. They stand in for their sources only while every source is what it was when they were made:
   whoever edits one runs Python from then on, until Ottla is installed again.
3. OTTLA_PURE=1 asks for Python. Both forms do the same.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

FOLDER: Final = os.path.dirname(__file__)
SOURCES: Final = os.path.dirname(os.path.dirname(FOLDER))
LISTING: Final = f"made-from-{sys.implementation.cache_tag}.txt"
"""One line for each compiled module: its name and the checksum of its source."""


class CompiledModules:
    """One of `sys.meta_path`: asked for every module before the file system is."""

    def __init__(self, folder: str = FOLDER, sources: str = SOURCES) -> None:
        self._folder = folder
        self._sources = sources
        self._usable: frozenset[str] | None = None

    @property
    def usable(self) -> frozenset[str]:
        """The modules whose compiled form is imported."""
        if self._usable is None:
            wanted = os.environ.get("OTTLA_PURE") != "1"
            self._usable = self._made_of_what_is_here() if wanted else frozenset()
        return self._usable

    def decline(self) -> None:
        """Import Python in this process, for those who want to step into it or replace parts."""
        self._usable = frozenset()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if not fullname.startswith("ottla.") or fullname not in self.usable:
            return None
        file = self._file(fullname)
        return ModuleSpec(fullname, ExtensionFileLoader(fullname, file), origin=file)

    def _made_of_what_is_here(self) -> frozenset[str]:
        try:
            with open(os.path.join(self._folder, LISTING)) as listing:
                made_from = dict(line.split() for line in listing)
        except FileNotFoundError:
            return frozenset()
        is_whole = all(
            self._checksum(module) == checksum and os.path.exists(self._file(module))
            for module, checksum in made_from.items()
        )
        return frozenset(made_from) if is_whole else frozenset()

    def _file(self, module: str) -> str:
        return os.path.join(self._folder, module + EXTENSION_SUFFIXES[0])

    def _checksum(self, module: str) -> str:
        try:
            with open(os.path.join(self._sources, *module.split(".")) + ".py", "rb") as source:
                return str(crc32(source.read()))
        except FileNotFoundError:
            return "no source"


MODULES: Final = CompiledModules()


def install() -> None:
    """Have what is imported from now on come from here first."""
    if MODULES not in sys.meta_path:
        sys.meta_path.insert(0, MODULES)
