"""Whether the machine went down since a broker last ran on a directory.

A process that is killed loses nothing it has written: the system keeps it and writes it out. A
machine that goes down loses what was not synced. Linux tells one from the other by an id it draws
at each boot; a broker notes it beside its data. Where there is no such id, or none was noted, the
machine counts as having gone down.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.storage.disk import Disk, read_file, replace_file

BOOT_FILE: Final = "ottla-boot-id"
_LINUX_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def machine_boot_id() -> str | None:
    """What names the time since this machine was started; None where it does not tell."""
    try:
        return _LINUX_BOOT_ID.read_text().strip() or None
    except OSError:
        return None


def has_been_up(disk: Disk, root: str, boot_id: str | None) -> bool:
    """Whether the machine has been up all the time since `note_boot`."""
    noted = read_file(disk, f"{root}/{BOOT_FILE}")
    return boot_id is not None and noted == boot_id.encode()


def note_boot(disk: Disk, root: str, boot_id: str | None) -> None:
    """Remember the boot. Only once it does not matter any more whether records were lost."""
    if boot_id is not None and not has_been_up(disk, root, boot_id):
        replace_file(disk, f"{root}/{BOOT_FILE}", boot_id.encode(), sync=True)
