"""Listener addresses as Kafka writes them: NAME://host:port."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.errors import ConfigError

PLAINTEXT: Final = "PLAINTEXT"
PORT_MAX: Final = 65_535
EVERY_INTERFACE: Final = ("0.0.0.0", "::")
_KAFKA_PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_FORM: Final = re.compile(
    r"(?:([A-Za-z0-9_.-]+)://)?(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/\s]*):([0-9]{1,5})"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener's name and address. An empty host is every interface, port 0 any free one."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint | None:
    """The endpoint a text stands for (PLAINTEXT where it names no listener), or None."""
    match = _FORM.fullmatch(text.strip())
    if match is None or int(match[3]) > PORT_MAX:
        return None
    return Endpoint((match[1] or PLAINTEXT).upper(), match[2].strip("[]"), int(match[3]))


def endpoint_objection(text: str) -> str | None:
    """What is wrong with the text of one listener, or None."""
    if parse_endpoint(text) is None:
        return f"{text!r} is not NAME://host:port"
    return None


def security_protocols(text: str) -> dict[str, str]:
    """The map NAME:PROTOCOL,... by listener name."""
    pairs = [entry.partition(":") for entry in text.split(",") if entry.strip()]
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def protocol_map_objection(text: str) -> str | None:
    """What is wrong with the text of a protocol map, or None."""
    for name, protocol in security_protocols(text).items():
        if protocol not in _KAFKA_PROTOCOLS:
            return (
                f"{name} is mapped to {protocol!r}, which is none of {', '.join(_KAFKA_PROTOCOLS)}"
            )
    return None


def endpoints(
    texts: Collection[str],
    *,
    setting: str,
    protocols: Mapping[str, str],
    leave_out: Collection[str],
) -> tuple[Endpoint, ...]:
    """The endpoints of a listener setting without the listeners named in `leave_out`.

    ConfigError for a listener used twice, and for one that asks for TLS or SASL: opening such a
    listener as plain text would give away what its owner meant to protect.
    """
    names_left_out = {name.upper() for name in leave_out}
    found: dict[str, Endpoint] = {}
    for text in texts:
        endpoint = parse_endpoint(text)
        if endpoint is None:
            raise ConfigError(setting, f"{text!r} is not an address", "write NAME://host:port")
        if endpoint.listener in names_left_out:
            continue
        if endpoint.listener in found:
            raise ConfigError(
                setting, f"listener {endpoint.listener} stands here twice", "name each once"
            )
        _refuse_unsupported(endpoint.listener, setting, protocols)
        found[endpoint.listener] = endpoint
    return tuple(found.values())


def _refuse_unsupported(listener: str, setting: str, protocols: Mapping[str, str]) -> None:
    protocol = protocols.get(listener)
    if protocol is None:
        raise ConfigError(
            setting,
            f"listener {listener} has no security protocol",
            f"add {listener}:{PLAINTEXT} to listener.security.protocol.map",
        )
    if protocol != PLAINTEXT:
        raise ConfigError(
            setting,
            f"listener {listener} asks for {protocol}, and this version serves plain text only",
            f"use {PLAINTEXT} on a network you trust",
        )
