"""How an application is run, and what its queries are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.spark.sink_plan import Delivery
from ottla.streams.topology import Subtopology


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How an application is run."""

    app_id: str
    checkpoint: str
    kafka: Mapping[str, str]
    """Settings of all clients, under Kafka's names; the brokers among them."""
    delivery: Delivery = Delivery.EXACTLY_ONCE
    interval_ms: int = 250
    """How often a query looks for records."""
    batch_records_max: int = 100_000
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the connector, for what is read."""


def query_name(app_id: str, part: Subtopology) -> str:
    """The name of a sub-topology's query, and of its transactions."""
    return f"{app_id}-{part.id}"
