"""How the brokers have served a client so far: connecting, answering, holding back, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from ottla.net.client_connection import ConnectionFailed


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """A snapshot; counts are since the client was made."""

    connections_opened: int = 0
    connections_failed: int = 0
    connect_avg_ms: float = 0.0
    connect_max_ms: float = 0.0
    """Until the versions were agreed on."""
    requests_answered: int = 0
    requests_failed: int = 0
    """Without an answer: the connection was lost, or the time was over."""
    request_latency_avg_ms: float = 0.0
    request_latency_max_ms: float = 0.0
    throttled_ms: int = 0
    """How long the brokers' quotas held answers back, as they say."""


class Times:
    """Durations of one kind of thing, and how often it failed."""

    __slots__ = ("count", "failures", "max_s", "sum_s")

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.sum_s = 0.0
        self.max_s = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts what is done inside: its time, or that the network failed it."""
        started = monotonic()
        try:
            yield
        except ConnectionFailed:
            self.failures += 1
            raise
        elapsed_s = monotonic() - started
        self.count += 1
        self.sum_s += elapsed_s
        self.max_s = max(self.max_s, elapsed_s)

    @property
    def avg_ms(self) -> float:
        """In milliseconds; 0 before the first."""
        return self.sum_s / self.count * 1000 if self.count else 0.0


class ClientCounters:
    """The counts behind the snapshot; only the loop changes them."""

    __slots__ = ("connects", "requests", "throttled_ms")

    def __init__(self) -> None:
        self.connects = Times()
        self.requests = Times()
        self.throttled_ms = 0

    def snapshot(self) -> ClientMetrics:
        """As it is now."""
        connects, requests = self.connects, self.requests
        return ClientMetrics(
            connections_opened=connects.count,
            connections_failed=connects.failures,
            connect_avg_ms=connects.avg_ms,
            connect_max_ms=connects.max_s * 1000,
            requests_answered=requests.count,
            requests_failed=requests.failures,
            request_latency_avg_ms=requests.avg_ms,
            request_latency_max_ms=requests.max_s * 1000,
            throttled_ms=self.throttled_ms,
        )
