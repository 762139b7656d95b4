"""Where a broker listens, as people write it. Does not resolve names or open anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.errors import ConfigError

DEFAULT_PORT: Final = 9092
PORT_MAX: Final = 65535
_FIX: Final = "write it as HOST:PORT, for example 127.0.0.1:9092"


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host, by name or number, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Reads `host`, `host:port`, `[::1]:port` or a listener such as `PLAINTEXT://host:port`."""
    rest = text.strip().rpartition("://")[2].rstrip("/")
    if rest.startswith("["):
        host, bracket, port_text = rest[1:].partition("]")
        if not bracket:
            raise ConfigError("address", f"{text!r} opens a bracket and never closes it", _FIX)
        port_text = port_text.removeprefix(":")
    elif rest.count(":") > 1:
        raise ConfigError("address", f"{text!r} is ambiguous", "write IPv6 as [::1]:9092")
    else:
        host, _, port_text = rest.partition(":")
    if not host:
        raise ConfigError("address", f"{text!r} names no host", _FIX)
    return Address(host, _parse_port(text, port_text))


def parse_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Reads addresses separated by commas, spaces, or given one by one; each only once."""
    parts = [part for text in texts for part in text.replace(",", " ").split()]
    if not parts:
        raise ConfigError("address", "no broker is named", _FIX)
    return tuple(dict.fromkeys(parse_address(part) for part in parts))


def _parse_port(text: str, port_text: str) -> int:
    if not port_text:
        return DEFAULT_PORT
    if not (port_text.isascii() and port_text.isdigit()) or int(port_text) > PORT_MAX:
        raise ConfigError("address", f"{text!r} has no port between 0 and {PORT_MAX}", _FIX)
    return int(port_text)
