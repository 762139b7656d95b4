"""Whether a disk takes something, found out by writing to it. What is free is known to the file
system alone: quotas and reserved blocks count too."""

from __future__ import annotations

from typing import Final

from ottla.storage.disk import Disk

PROBE: Final = ".ottla_probe"
PROBE_BYTES: Final = 1024 * 1024
"""As much as a batch may have by default."""


def has_room(disk: Disk, directory: str) -> bool:
    """Writes a file, syncs it and removes it again."""
    path = f"{directory}/{PROBE}"
    try:
        try:
            file = disk.open(path, create=True)
            try:
                file.write_at(0, bytes(PROBE_BYTES))
                file.sync()
            finally:
                file.close()
        finally:
            disk.remove(path)
    except OSError:
        return False
    return True
