"""What a consumer has fetched, as one Arrow table instead of records.

Over the consumer's core, so that both faces share it. Serializers and interceptors, which look at
single records, have no part in this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.clients.arrow.columns import (
    COLUMNS,
    TOPIC,
    checked_columns,
    decode_columns,
    read_schema,
)
from ottla.clients.consumer.core import ConsumerCore
from ottla.clients.consumer.subscription import TakenBatches
from ottla.clients.failures import WrongUse
from ottla.errors import OttlaError
from ottla.records.arrow_decode import Window
from ottla.records.arrow_schema import require_pyarrow

if TYPE_CHECKING:
    import pyarrow

POLL_BYTES_DEFAULT: Final = 16 * 1024 * 1024
"""What one poll decodes at most, and a batch more, as it came over the wire."""
RECORDS_UNLIMITED: Final = 2**62


@dataclass(frozen=True, slots=True)
class ArrowPoll:
    """How much one poll returns, and which columns of it."""

    columns: tuple[str, ...]
    records_max: int
    bytes_max: int

    @property
    def limits(self) -> tuple[int, int]:
        """Records and bytes."""
        return self.records_max, self.bytes_max


def plan_poll(
    max_records: int | None, max_bytes: int | None, columns: Sequence[str] = COLUMNS
) -> ArrowPoll:
    """Reads what a person wrote."""
    records = RECORDS_UNLIMITED if max_records is None else max_records
    size_bytes = POLL_BYTES_DEFAULT if max_bytes is None else max_bytes
    if records < 1 or size_bytes < 1:
        raise WrongUse("a poll returns at least one record: max_records and max_bytes begin at 1")
    return ArrowPoll(checked_columns(columns), records, size_bytes)


def table_of(core: ConsumerCore, found: list[TakenBatches], poll: ArrowPoll) -> pyarrow.Table:
    """What was taken as a table. Where it cannot be read, the positions go back to before it."""
    arrow = require_pyarrow()
    checks_crc = core.settings.check_crcs
    chunks: list[pyarrow.RecordBatch] = []
    try:
        for taken in found:
            window = Window(taken.start, taken.end)
            chunks += decode_columns(
                taken.batches, taken.where, window, poll.columns, checks_crc=checks_crc
            )
    except OttlaError:
        _go_back(core, found)
        raise
    table = arrow.Table.from_batches(chunks, schema=read_schema(poll.columns))
    core.counters.records_returned += table.num_rows
    if TOPIC in poll.columns and len({taken.where.topic for taken in found}) > 1:
        table = table.unify_dictionaries()
    return table


def _go_back(core: ConsumerCore, found: list[TakenBatches]) -> None:
    with core.subscription.lock:
        for taken in found:
            state = core.subscription.states.get(taken.where)
            if state is not None:
                state.move_to(taken.start)
    core.on_loop(core.request_positions)
