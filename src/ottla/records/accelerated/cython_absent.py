"""Stands in for the `cython` module where kernel.py runs uncompiled and Cython is not installed.

Types stand only in annotations, which nobody evaluates; what is left are decorators that change
nothing and the answer to whether this is compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

Decorated = TypeVar("Decorated")

compiled: Final = False
Py_ssize_t: Final = int
ulonglong: Final = int


def declare(kind: type[int], value: int) -> int:
    """Cython: a C variable of the module."""
    return kind(value)


def cfunc(decorated: Decorated) -> Decorated:
    """Cython: a C function."""
    return decorated


def inline(decorated: Decorated) -> Decorated:
    """Cython: a C function that may be inlined."""
    return decorated


def cclass(decorated: Decorated) -> Decorated:
    """Cython: a class whose attributes are C variables."""
    return decorated


def final(decorated: Decorated) -> Decorated:
    """Cython: a class nobody inherits from."""
    return decorated


def exceptval(value: object = None, check: bool = True) -> Callable[[Decorated], Decorated]:  # noqa: ARG001, FBT
    """Cython: how callers learn of an exception. Here they just do."""
    return cfunc


class _Nogil:
    """Cython: code that lets other threads run meanwhile, a block or a function. Here none does."""

    def __call__(self, decorated: Decorated) -> Decorated:
        return decorated

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


nogil: Final = _Nogil()
