"""Finds segment files: a file itself, those of a partition's directory, or of a whole data one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from ottla.storage.file_names import LOG, is_deleted_directory


def segment_files(paths: Iterable[Path]) -> list[Path]:
    """The segment files of all paths, in the order of their offsets within a partition."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += [
                file for directory in partition_directories(path) for file in _segments(directory)
            ]
        elif path.suffix == LOG:
            found.append(path)
        else:
            raise click.UsageError(f"{path} is no segment file; its name would end in .log.")
    return found


def partition_directories(path: Path) -> list[Path]:
    """`path` itself if it holds segments, else the directories in it that do."""
    if _segments(path):
        return [path]
    found = [
        entry
        for entry in sorted(path.iterdir())
        if entry.is_dir() and not is_deleted_directory(entry.name) and _segments(entry)
    ]
    if not found:
        raise click.UsageError(f"There are no segment files in {path}.")
    return found


def _segments(directory: Path) -> list[Path]:
    return sorted(file for file in directory.glob(f"*{LOG}") if file.is_file())
