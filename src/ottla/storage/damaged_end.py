"""Sets aside a log's end from its first damage on, so that a replica fetches it again.

Nothing is deleted: what is cut stays beside the log under `.damaged`. Whether another replica has
it is for the caller to know. The log must not be open.
"""

from __future__ import annotations

from ottla.model.ids import Position
from ottla.storage import file_names
from ottla.storage.disk import Disk, replace_file
from ottla.storage.inspect import Finding, VerifiedLog
from ottla.storage.recovery import DAMAGED


def first_damage(report: VerifiedLog) -> Finding | None:
    """Where the data stops being sound; None where only what is made of it is damaged."""
    return next((each for each in report.findings if each.path.endswith(file_names.LOG)), None)


def set_aside_from(disk: Disk, directory: str, damage: Finding) -> list[str]:
    """Cut the log at the damage; the files that hold what was cut."""
    name = damage.path.rpartition("/")[2]
    names = sorted(entry.name for entry in disk.entries(directory) if not entry.is_directory)
    base = name.removesuffix(file_names.LOG)
    aside: list[str] = []
    if damage.position > 0:
        aside.append(_copy_end(disk, damage.path, damage.position))
    for each in names:
        stem, suffix = each[: each.find(".")], each[each.find(".") :]
        is_cut = suffix in file_names.SEGMENT_SUFFIXES and (stem > base or stem == base)
        if is_cut and not (each == name and damage.position > 0):
            disk.rename(f"{directory}/{each}", f"{directory}/{each}{DAMAGED}")
            aside.append(f"{directory}/{each}{DAMAGED}")
    if damage.position > 0:
        file = disk.open(damage.path)
        try:
            file.truncate(damage.position)
            file.sync()
        finally:
            file.close()
    disk.sync_directory(directory)
    return aside


def _copy_end(disk: Disk, path: str, position: Position) -> str:
    file = disk.open(path)
    try:
        data = file.read_at(position, file.size() - position)
    finally:
        file.close()
    target = f"{path}.{position}{DAMAGED}"
    replace_file(disk, target, data, sync=True)
    return target
