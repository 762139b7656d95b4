"""Connections that never leave the machine. Does not know who listens, or for what.

There is no network between their ends that could be overrun. A machine may still be set to pace
what it sends (BBR does): then every 64 KB wait for a timer of the kernel's, and setting the timers
costs more than all the rest of sending.
"""

from __future__ import annotations

import asyncio
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
    if is_own_machine(str(listening.getsockname()[0])):
        _choose_unpaced(listening)


async def connect_unpaced(host: str, port: int) -> socket.socket | None:
    """A connection to an address of this machine that sends without pacing; None for any other.

    OSError where nobody takes it.
    """
    loop = asyncio.get_running_loop()
    if is_own_machine(host):
        return await _connect(loop, host, port)
    if host != "localhost":
        return None
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    hosts = [str(address[0]) for *_, address in found]
    if not all(map(is_own_machine, hosts)):
        return None
    for each in hosts[:-1]:
        with suppress(OSError):
            return await _connect(loop, each, port)
    return await _connect(loop, hosts[-1], port)


async def _connect(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        made.setblocking(False)
        _choose_unpaced(made)
        await loop.sock_connect(made, (host, port))
    except BaseException:
        made.close()
        raise
    return made


def _choose_unpaced(of: socket.socket) -> None:
    if _CONGESTION_CONTROL is not None:
        with suppress(OSError):  # Then it sends as the machine is set to.
            of.setsockopt(socket.IPPROTO_TCP, _CONGESTION_CONTROL, UNPACED)
