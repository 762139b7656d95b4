"""Authentication and encryption between a broker and ZooKeeper, as the address asks for them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="kazoo is absent: pip install 'ottla[cluster]'")

from ottla.cluster.store import Create, StoreFailed, StoreUnreachable
from ottla.cluster.zookeeper import ZooKeeperStore
from ottla.testing.zookeeper import Ensemble, ZooKeeper, free_ports, why_unavailable
from support.zookeeper_stores import CLOCK, a_store, play


@pytest.fixture(autouse=True)
def _zookeeper_can_run() -> None:
    if reason := why_unavailable():
        pytest.skip(reason)


def test_what_one_user_made_for_itself_no_other_user_touches(address: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    own = f"{address}&auth=digest&username=ottla&password_file={tmp_path}/password&acl=creator"

    async def scenario() -> None:
        async with a_store(own) as store:
            await store.multi([Create("/a", b"x")])
            assert await store.get("/a") is not None
        async with a_store(own) as again:
            assert await again.get("/a") is not None
        with pytest.raises(StoreFailed, match="check the credentials"):
            async with a_store(address) as stranger:
                await stranger.get("/a")
        with pytest.raises(StoreFailed, match="check the credentials"):
            async with a_store(address) as stranger:
                await stranger.multi([Create("/a/b")])

    play(scenario)


@pytest.fixture(scope="module")
def sasl_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    if reason := why_unavailable():
        pytest.skip(reason)
    jaas = tmp_path_factory.mktemp("sasl") / "jaas.conf"
    jaas.write_text(
        "Server { org.apache.zookeeper.server.auth.DigestLoginModule required"
        ' user_ottla="s3cret"; };\n'
    )
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    ensemble = Ensemble(
        settings={
            "authProvider.sasl": provider,
            "enforce.auth.enabled": "true",
            "enforce.auth.schemes": "sasl",
        },
        properties={"java.security.auth.login.config": str(jaas)},
    )
    with ZooKeeper(ensemble=ensemble) as server:
        yield server


def test_a_server_that_asks_for_sasl_takes_the_right_password(sasl_zookeeper: ZooKeeper) -> None:
    async def scenario() -> None:
        options = "auth=sasl&username=ottla&password=s3cret&acl=creator"
        async with a_store(f"{sasl_zookeeper.address}/x?{options}") as store:
            await store.multi([Create("/a", b"x")])
            assert await store.get("/a") is not None

    play(scenario)


@pytest.mark.parametrize(
    ("options", "reason"),
    [("", "gave no session"), ("auth=sasl&username=ottla&password=wrong", "RequireSasl")],
)
def test_a_server_that_asks_for_sasl_refuses_others(
    sasl_zookeeper: ZooKeeper, options: str, reason: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(StoreUnreachable, match=reason):
            await ZooKeeperStore.open(f"{sasl_zookeeper.address}/x?{options}", CLOCK, seconds_max=3)

    play(scenario)


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def certificates(folder: Path) -> None:
    """An authority, and a key with a certificate for the server and for a client."""
    subject = "/CN=Ottla test authority"
    openssl(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        subject,
        "-keyout",
        folder / "ca.key",
        "-out",
        folder / "ca.pem",
    )
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            folder / f"{name}.key",
            "-out",
            folder / f"{name}.csr",
        )
        openssl(
            "x509",
            "-req",
            "-in",
            folder / f"{name}.csr",
            "-CA",
            folder / "ca.pem",
            "-CAkey",
            folder / "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            folder / "names",
            "-out",
            folder / f"{name}.crt",
        )
    both = (folder / "server.key").read_text() + (folder / "server.crt").read_text()
    (folder / "server.pem").write_text(both)


def test_tls_with_a_certificate_on_either_side(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is absent, which makes the certificates")
    certificates(tmp_path)
    (port,) = free_ports(1)
    ensemble = Ensemble(
        settings={
            "secureClientPort": str(port),
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": str(tmp_path / "server.pem"),
            "ssl.trustStore.location": str(tmp_path / "ca.pem"),
            "ssl.clientAuth": "need",
        }
    )
    trust = f"tls=true&tls_ca={tmp_path}/ca.pem"
    identity = f"&tls_certificate={tmp_path}/client.crt&tls_key={tmp_path}/client.key"
    secure = f"zookeeper://localhost:{port}/x"

    async def scenario() -> None:
        async with a_store(f"{secure}?{trust}{identity}") as store:
            await store.multi([Create("/a", bytes(500_000))])
            node = await store.get("/a")
            assert node is not None
            assert len(node.data) == 500_000
        for options in (trust, f"tls=true{identity}", ""):
            with pytest.raises(StoreUnreachable):
                await ZooKeeperStore.open(f"{secure}?{options}", CLOCK, seconds_max=2)

    with ZooKeeper(ensemble=ensemble):
        play(scenario)
