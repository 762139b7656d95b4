"""Which process opened a connection to us: the kernel is asked, so that nobody has to say.

All programs of a local cluster have the same address, and a broker tells clients and other brokers
one address of its own. Linux lists every connection with a number of its socket, and for every
process the sockets it holds: no privilege is needed for one's own processes.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

TABLE: Final = Path("/proc/net/tcp")
_ADDRESS, _PEER, _SOCKET_NUMBER = 1, 2, 9
"""The columns of the kernel's table that are read."""


def is_available() -> bool:
    """Whether this system can tell."""
    return TABLE.exists()


def opener(ours: tuple[str, int], theirs: tuple[str, int], process_ids: Iterable[int]) -> int:
    """The one of these processes that holds the other end; 0 where it is none of them."""
    number = _socket_number(theirs, ours)
    if number is None:
        return 0  # It has closed the connection already.
    wanted = f"socket:[{number}]"
    return next((pid for pid in process_ids if _holds(pid, wanted)), 0)


def _socket_number(local: tuple[str, int], remote: tuple[str, int]) -> str | None:
    wanted = [_hexadecimal(local), _hexadecimal(remote)]
    with TABLE.open() as lines:
        for line in lines:
            columns = line.split()
            if [columns[_ADDRESS], columns[_PEER]] == wanted:
                return columns[_SOCKET_NUMBER]
    return None


def _hexadecimal(address: tuple[str, int]) -> str:
    """As the kernel writes it: the host as one number in this machine's byte order; the port."""
    (host,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{host:08X}:{address[1]:04X}"


def _holds(process_id: int, wanted: str) -> bool:
    directory = f"/proc/{process_id}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return False  # It has ended.
    return any(_link(f"{directory}/{name}") == wanted for name in names)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
