"""What a producer has done so far, in numbers a person can read."""

from __future__ import annotations

import msgspec


class ProducerMetrics(msgspec.Struct, frozen=True):
    """A snapshot; counts are since the producer was opened."""

    records_sent: int
    bytes_sent: int
    batches_sent: int
    requests_sent: int
    batches_retried: int
    records_failed: int
    buffered_bytes: int
    requests_in_flight: int
    request_latency_avg_ms: float
    request_latency_max_ms: float
    throttled_ms: int

    @property
    def records_per_batch(self) -> float:
        """How well records are gathered."""
        return self.records_sent / self.batches_sent if self.batches_sent else 0.0


class ProducerCounters:
    """The counts behind the snapshot; only the loop changes them."""

    __slots__ = (
        "batches_retried",
        "batches_sent",
        "bytes_sent",
        "latency_max_s",
        "latency_sum_s",
        "records_failed",
        "records_sent",
        "requests_sent",
        "throttled_ms",
    )

    def __init__(self) -> None:
        self.records_sent = 0
        self.bytes_sent = 0
        self.batches_sent = 0
        self.requests_sent = 0
        self.batches_retried = 0
        self.records_failed = 0
        self.latency_sum_s = 0.0
        self.latency_max_s = 0.0
        self.throttled_ms = 0

    def answered(self, latency_s: float) -> None:
        """One request was answered."""
        self.requests_sent += 1
        self.latency_sum_s += latency_s
        self.latency_max_s = max(self.latency_max_s, latency_s)

    def snapshot(self, *, buffered_bytes: int, in_flight: int) -> ProducerMetrics:
        """The counts now."""
        return ProducerMetrics(
            records_sent=self.records_sent,
            bytes_sent=self.bytes_sent,
            batches_sent=self.batches_sent,
            requests_sent=self.requests_sent,
            batches_retried=self.batches_retried,
            records_failed=self.records_failed,
            buffered_bytes=buffered_bytes,
            requests_in_flight=in_flight,
            request_latency_avg_ms=1000 * self.latency_sum_s / max(self.requests_sent, 1),
            request_latency_max_ms=1000 * self.latency_max_s,
            throttled_ms=self.throttled_ms,
        )
