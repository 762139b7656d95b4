"""What a consumer has fetched, as one Arrow table instead of records.

Over the consumer's core, so that both faces share it. Serializers and interceptors, which look at
single records, have no part in this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from ottla.clients.consumer.unreadable import UnreadableBatch, unreadable_batch
from ottla.clients.failures import WrongUse
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
    """What was taken as a table.

    Where a batch cannot be read, the table ends before it in its partition, and the next raises.
    UnreadableBatch where the table would be empty; then the positions go back to before it.
    """
    arrow = require_pyarrow()
    chunks: list[pyarrow.RecordBatch] = []
    for number, taken in enumerate(found):
        error = _decode(core, taken, poll, chunks)
        if error is None:
            continue
        if not chunks:
            _go_back(core, found[number + 1 :])
            raise error
        core.subscription.failing = taken.where
    table = arrow.Table.from_batches(chunks, schema=read_schema(poll.columns))
    core.counters.records_returned += table.num_rows
    if TOPIC in poll.columns and len({taken.where.topic for taken in found}) > 1:
        table = table.unify_dictionaries()
    return table


def _decode(
    core: ConsumerCore, taken: TakenBatches, poll: ArrowPoll, chunks: list[pyarrow.RecordBatch]
) -> UnreadableBatch | None:
    """Adds what can be read to the chunks; goes back to the first batch that cannot."""
    window, columns = Window(taken.start, taken.end), poll.columns
    checks_crc = core.settings.check_crcs
    try:
        chunks += list(
            decode_columns(taken.batches, taken.where, window, columns, checks_crc=checks_crc)
        )
        return None
    except Exception:  # whatever damaged bytes make of a decoder
        pass
    position = taken.start
    for number, batch in enumerate(taken.batches):
        try:
            chunks += list(
                decode_columns([batch], taken.where, window, columns, checks_crc=checks_crc)
            )
        except Exception as error:
            behind = taken.batches[number + 1 :]
            limit = int(behind[0].base_offset) if behind else max(taken.end, batch.next_offset)
            _go_back(core, [replace(taken, start=position)])
            return unreadable_batch(batch, taken.where, position, limit, error)
        position = min(int(batch.next_offset), taken.end)
    return None


def _go_back(core: ConsumerCore, found: Sequence[TakenBatches]) -> None:
    with core.subscription.lock:
        for taken in found:
            state = core.subscription.states.get(taken.where)
            if state is not None:
                state.move_to(taken.start)
    core.reader.look_again()
