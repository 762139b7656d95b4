"""Where a ZooKeeper ensemble is and how to speak to it, from one line of text.

    zookeeper://host:2181,host2:2181/chroot?session_timeout_ms=6000
    zookeeper://host:2181/ottla?auth=digest&username=ottla&password_file=/etc/ottla/zookeeper
    zookeeper://host:2281?tls=true&tls_ca=/etc/ca.pem&tls_certificate=c.pem&tls_key=k.pem

`auth` is digest (ZooKeeper's own) or sasl (DIGEST-MD5; GSSAPI with `sasl_mechanism=GSSAPI`).
`acl=creator` lets only the authenticated identity touch the nodes that are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from ottla.errors import ConfigError

SCHEME: Final = "zookeeper://"
PORT: Final = 2181
SETTING: Final = "metadata"
SESSION_TIMEOUT_MS: Final = 18_000
_TRUTHS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ZooKeeperOptions:
    """How to speak to the ensemble. The names are those of the address's options."""

    session_timeout_ms: int = SESSION_TIMEOUT_MS
    auth: str = "none"
    username: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""
    sasl_mechanism: str = "DIGEST-MD5"
    acl: str = "open"
    tls: bool = False
    tls_ca: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_key_password: str = field(default="", repr=False)
    tls_verify: bool = True
    tls_check_hostname: bool = True

    def secret(self) -> str:
        """The password, from the file that holds it where one is named."""
        if not self.password_file:
            return self.password
        try:
            return Path(self.password_file).read_text().strip()
        except OSError as error:
            raise _wrong(
                f"password_file cannot be read ({error})", "name a readable file"
            ) from None


@dataclass(frozen=True, slots=True)
class ZooKeeperAddress:
    """The servers, the branch of their tree that is ours, and how to speak to them."""

    hosts: tuple[str, ...]
    chroot: str = ""
    options: ZooKeeperOptions = ZooKeeperOptions()

    @classmethod
    def parse(cls, text: str) -> ZooKeeperAddress:
        """ConfigError says what is wrong with the text and how it should be."""
        if not text.startswith(SCHEME):
            raise _wrong(f"{text!r} is not an address", f"begin with {SCHEME}")
        place, _, query = text.removeprefix(SCHEME).partition("?")
        servers, slash, path = place.partition("/")
        chroot = f"/{path.rstrip('/')}" if slash and path.rstrip("/") else ""
        if not all(chroot.split("/")[1:]):
            raise _wrong(f"the path {chroot!r} has an empty part", "write it as /a/b")
        hosts = tuple(_host(each.strip()) for each in servers.split(","))
        options = _options(dict(parse_qsl(query, keep_blank_values=True)))
        return cls(hosts, unquote(chroot), options)

    def with_session_timeout(self, timeout_ms: int) -> ZooKeeperAddress:
        return replace(self, options=replace(self.options, session_timeout_ms=timeout_ms))

    def __str__(self) -> str:
        """Without options, which may hold a password."""
        return f"{SCHEME}{','.join(self.hosts)}{self.chroot}"


def _host(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise _wrong(f"{text!r} is not a server", "write host:port, with commas between servers")
    return f"{host}:{port}"


def _options(texts: Mapping[str, str]) -> ZooKeeperOptions:
    known = {each.name: each.type for each in fields(ZooKeeperOptions)}
    values: dict[str, str | int | bool] = {}
    for name, text in texts.items():
        if name not in known:
            raise _wrong(f"there is no option {name!r}", f"use one of {', '.join(known)}")
        values[name] = _value(name, text, str(known[name]))
    options = ZooKeeperOptions(**values)  # type: ignore[arg-type]
    _check(options)
    return options


def _value(name: str, text: str, kind: str) -> str | int | bool:
    if kind == "bool":
        if text not in _TRUTHS:
            raise _wrong(f"{name} is {text!r}", "write true or false")
        return _TRUTHS[text]
    if kind == "int":
        if not text.isdecimal() or int(text) == 0:
            raise _wrong(f"{name} is {text!r}", "write a whole number above zero")
        return int(text)
    return text


def _check(options: ZooKeeperOptions) -> None:
    if options.auth not in ("none", "digest", "sasl"):
        raise _wrong(f"auth is {options.auth!r}", "write none, digest or sasl")
    if options.acl not in ("open", "creator"):
        raise _wrong(f"acl is {options.acl!r}", "write open or creator")
    if options.acl == "creator" and options.auth == "none":
        raise _wrong("acl=creator needs an identity", "add auth, username and password_file")
    needs_name = options.auth == "digest" or options.sasl_mechanism == "DIGEST-MD5"
    if options.auth != "none" and needs_name and not options.username:
        raise _wrong(f"auth={options.auth} needs a username", "add username=...")
    if bool(options.tls_certificate) != bool(options.tls_key):
        raise _wrong("tls_certificate and tls_key belong together", "give both or neither")


def _wrong(problem: str, remedy: str) -> ConfigError:
    return ConfigError(SETTING, problem, remedy)
