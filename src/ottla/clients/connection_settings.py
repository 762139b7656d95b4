"""What every client is told about the cluster it talks to, declared once under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla import __version__
from ottla.clients.address import Address, parse_addresses
from ottla.clients.broker_connection import ConnectionOptions
from ottla.clients.client import Client, ClientOptions
from ottla.clients.retry import RetryPolicy
from ottla.settings.declare import INT_MAX, LONG_MAX, Kind, Setting, declare

DEFAULT_BOOTSTRAP: Final = ("127.0.0.1:9092",)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to find the brokers, how to introduce oneself, and how long to wait for them."""

    bootstrap_servers: tuple[str, ...] = declare(
        DEFAULT_BOOTSTRAP,
        Setting("bootstrap.servers", Kind.LIST),
        "Some brokers as HOST:PORT; the others are learnt from them.",
    )
    client_id: str = declare(
        "ottla", Setting("client.id", Kind.STRING), "The name brokers see in requests and logs."
    )
    client_rack: str = declare(
        "", Setting("client.rack", Kind.STRING), "Where this client runs, to read from near it."
    )
    request_timeout_ms: int = declare(
        30_000,
        Setting("request.timeout.ms", Kind.INT, at_least=1),
        "How long an answer may take before the connection is given up.",
    )
    socket_connection_setup_timeout_ms: int = declare(
        10_000,
        Setting("socket.connection.setup.timeout.ms", Kind.LONG, at_least=1, at_most=INT_MAX),
        "How long opening a connection may take.",
    )
    retry_backoff_ms: int = declare(
        100,
        Setting("retry.backoff.ms", Kind.LONG, at_least=0, at_most=INT_MAX),
        "The wait before the first repetition; it doubles from there.",
    )
    retry_backoff_max_ms: int = declare(
        1_000,
        Setting("retry.backoff.max.ms", Kind.LONG, at_least=0, at_most=INT_MAX),
        "The longest wait between two attempts.",
    )
    metadata_max_age_ms: int = declare(
        300_000,
        Setting("metadata.max.age.ms", Kind.LONG, at_least=1, at_most=LONG_MAX),
        "How old the picture of the cluster may become without any trouble.",
    )
    security_protocol: str = declare(
        "PLAINTEXT",
        Setting("security.protocol", Kind.STRING, is_fixed=True),
        "only plain connections are there yet",
    )


def addresses_of(settings: ConnectionSettings) -> tuple[Address, ...]:
    """The brokers to begin with."""
    return parse_addresses(settings.bootstrap_servers)


def client_for(settings: ConnectionSettings, *, total_s: float = 30.0) -> Client:
    """A client by these settings; nothing is connected yet."""
    connection = ConnectionOptions(
        client_id=settings.client_id,
        software_version=__version__,
        connect_timeout_s=settings.socket_connection_setup_timeout_ms / 1000,
        request_timeout_s=settings.request_timeout_ms / 1000,
    )
    return Client(addresses_of(settings), ClientOptions(connection, retries_for(settings, total_s)))


def retries_for(settings: ConnectionSettings, total_s: float) -> RetryPolicy:
    """Attempts until the time is over, with the waits that were set."""
    return RetryPolicy(
        attempts_max=INT_MAX,
        first_wait_s=settings.retry_backoff_ms / 1000,
        longest_wait_s=max(settings.retry_backoff_ms, settings.retry_backoff_max_ms) / 1000,
        total_s=total_s,
    )
