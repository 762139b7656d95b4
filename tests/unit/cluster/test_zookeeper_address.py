"""The address of an ensemble: servers, chroot and options, or a sentence about what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cluster.zookeeper_address import ZooKeeperAddress
from ottla.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("zookeeper://a", ("a:2181",), ""),
        ("zookeeper://a:1,b:2", ("a:1", "b:2"), ""),
        ("zookeeper://a:1, b", ("a:1", "b:2181"), ""),
        ("zookeeper://a/", ("a:2181",), ""),
        ("zookeeper://a/x/y/", ("a:2181",), "/x/y"),
        ("zookeeper://[::1]:7,[::2]", ("[::1]:7", "[::2]:2181"), ""),
    ],
)
def test_servers_and_chroot(text: str, hosts: tuple[str, ...], chroot: str) -> None:
    address = ZooKeeperAddress.parse(text)
    assert (address.hosts, address.chroot) == (hosts, chroot)


def test_options_are_taken_from_the_query(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    address = ZooKeeperAddress.parse(
        "zookeeper://a/x?session_timeout_ms=6000&auth=digest&username=u"
        f"&password_file={tmp_path}/secret&acl=creator&tls=true&tls_check_hostname=false"
    )
    options = address.options
    assert (options.session_timeout_ms, options.auth, options.username) == (6000, "digest", "u")
    assert options.secret() == "s3cret"
    assert (options.tls, options.tls_verify, options.tls_check_hostname) == (True, True, False)
    assert address.with_session_timeout(5).options.session_timeout_ms == 5


def test_a_password_is_never_shown() -> None:
    address = ZooKeeperAddress.parse("zookeeper://a?auth=sasl&username=u&password=hidden")
    assert address.options.secret() == "hidden"
    assert "hidden" not in f"{address} {address!r}"


@pytest.mark.parametrize(
    "text",
    [
        "http://a",
        "a:2181",
        "zookeeper://",
        "zookeeper://a:0",
        "zookeeper://a:x",
        "zookeeper://a,,b",
        "zookeeper://a//b",
        "zookeeper://a?colour=red",
        "zookeeper://a?tls=yes",
        "zookeeper://a?session_timeout_ms=0",
        "zookeeper://a?auth=magic",
        "zookeeper://a?auth=digest",
        "zookeeper://a?acl=creator",
        "zookeeper://a?acl=mine",
        "zookeeper://a?tls=true&tls_key=k",
    ],
)
def test_a_wrong_address_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ZooKeeperAddress.parse(text)
    assert raised.value.fix


def test_a_password_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    text = f"zookeeper://a?auth=digest&username=u&password_file={tmp_path}/absent"
    with pytest.raises(ConfigError, match="cannot be read"):
        ZooKeeperAddress.parse(text).options.secret()
