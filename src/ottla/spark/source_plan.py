"""Everything a read is told, from its options; the driver and the tasks have the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.clients.connection_settings import ConnectionSettings, addresses_of
from ottla.clients.consumer.settings import ConsumerSettings
from ottla.clients.settings_source import SettingsSource
from ottla.spark.bounds import Bound, ending_bound, starting_bound
from ottla.spark.options import OptionTexts, TriggerLimits, Use, trigger_limits
from ottla.spark.selection import Selection, selection_of

_ISOLATION: Final = "isolation.level"
_GROUP: Final = "group.id"
IDLE_WAIT_MS_DEFAULT: Final = 100
"""Short beside what a micro-batch takes: another source of the same query waits as long."""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What to read, and how."""

    selection: Selection
    start: Bound
    end: Bound | None
    """Of a batch; a stream has none."""
    kafka: Mapping[str, str]
    """A consumer's settings under Kafka's names."""
    connection: ConnectionSettings
    committed_only: bool
    group_id: str = ""
    has_headers: bool = False
    fails_on_data_loss: bool = True
    tasks_min: int | None = None
    records_max: int | None = None
    """The most offsets of one task."""
    pushes_filters: bool = False
    limits: TriggerLimits = field(default_factory=TriggerLimits)
    idle_wait_ms: int = 0
    """How long a stream waits for records before it says that there are none."""


def source_plan(use: Use, options: Mapping[str, str]) -> SourcePlan:
    """Reads and checks the options; ConfigError says what is wrong with them."""
    texts = OptionTexts(use, options)
    kafka = texts.kafka()
    group = texts.text(_GROUP) or kafka.pop(_GROUP, "")
    kafka.setdefault(_ISOLATION, "read_committed")
    source = SettingsSource("reader", kafka, {})
    source.check_names((ConnectionSettings, ConsumerSettings))
    connection = source.read(ConnectionSettings)
    addresses_of(connection)  # complains where they are none
    idle_wait_ms = texts.number("idleWaitMs", at_least=0)
    return SourcePlan(
        selection=selection_of(texts),
        start=starting_bound(texts),
        end=ending_bound(texts) if use is Use.READ else None,
        kafka=kafka,
        connection=connection,
        committed_only=source.read(ConsumerSettings).committed_only,
        group_id=group,
        has_headers=texts.flag("includeHeaders", default=False),
        fails_on_data_loss=texts.flag("failOnDataLoss", default=True),
        pushes_filters=texts.flag("pushFilters", default=False),
        tasks_min=texts.number("minPartitions"),
        records_max=texts.number("maxRecordsPerPartition"),
        limits=trigger_limits(texts) if use is Use.STREAM_READ else TriggerLimits(),
        idle_wait_ms=IDLE_WAIT_MS_DEFAULT if idle_wait_ms is None else idle_wait_ms,
    )
