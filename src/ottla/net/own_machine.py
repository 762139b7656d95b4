"""Connections that never leave the machine. Does not know who listens, or for what.

There is no network between their ends that could be overrun. A machine may still be set to pace
what it sends (BBR does): then every 64 KB wait for a timer of the kernel's, and setting the timers
costs more than all the rest of sending.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import suppress
from typing import Final

UNPACED: Final = b"reno"
"""Sends as much as the other end has room for. Every kernel has it, and anybody may choose it."""
_CONGESTION_CONTROL: Final[int | None] = getattr(socket, "TCP_CONGESTION", None)


def is_own_machine(host: str) -> bool:
    """Whether only programs of this machine reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def send_unpaced(listening: socket.socket) -> None:
    """Lets connections that come in by a local address send without pacing.

    They have it from the socket that listens: one that has begun to pace can not be told to stop.
    """
    if _CONGESTION_CONTROL is None or not is_own_machine(str(listening.getsockname()[0])):
        return
    with suppress(OSError):  # Then it sends as the machine is set to.
        listening.setsockopt(socket.IPPROTO_TCP, _CONGESTION_CONTROL, UNPACED)
