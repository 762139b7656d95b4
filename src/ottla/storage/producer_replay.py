"""Learns the producers' state, and the transaction indexes with it, from snapshots and the log.

The newest good snapshot not past the end is the start; batches from there on are replayed by their
headers. Where a snapshot is missing or damaged an older one, or the beginning of the log, will do:
it takes longer, and comes out the same.
"""

from __future__ import annotations

from typing import Final

from ottla.errors import OutOfOrderSequence
from ottla.model.ids import Offset
from ottla.records.batch import CONTROL_BIT, RecordBatch
from ottla.storage.batch_scan import read_batch, walk
from ottla.storage.producer_snapshot import ProducerSnapshots
from ottla.storage.producer_state import ProducerState, RememberedBatch
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

RECALLED_BYTES: Final = 8 * 1024 * 1024
"""How far back from the end of the log producers' batches are looked for."""


def rebuild_producers(
    segments: Segments, snapshots: ProducerSnapshots, *, index_from: int | None = None
) -> ProducerState:
    """The state at the log's end.

    Transaction indexes of segments that begin at or past `index_from` are written anew; the replay
    then begins early enough to know every transaction that ends in them.
    """
    end_offset = segments.active.end_offset
    newest = end_offset if index_from is None else min(end_offset, index_from)
    state = ProducerState()
    start = _restore(state, snapshots, newest)
    for segment in segments.at_or_after(start):
        if segment.end_offset > start:
            entries = _replay(segment, state, start)
            if index_from is not None and segment.base_offset >= index_from:
                segment.set_transactions(TransactionIndex(entries))
    return state


def find_duplicate(
    batch: RecordBatch, state: ProducerState, segments: Segments
) -> RememberedBatch | None:
    """The batch in the log that `batch` repeats; raises where it may not be written at all."""
    try:
        return state.check(batch)
    except OutOfOrderSequence:
        if not _recall(segments, state):
            raise
        return state.check(batch)


def _recall(segments: Segments, state: ProducerState) -> bool:
    """Learn of earlier batches than a snapshot had, from the end of the log; True if that was new.

    Kafka's snapshots have only the last batch, and a producer whose last five requests were all cut
    off by a restart repeats all five.
    """
    if state.is_complete:
        return False
    state.is_complete = True
    bytes_left = RECALLED_BYTES
    for segment in reversed(list(segments)):
        start = segment.indexes().offsets.position_near(segment.size_bytes - bytes_left)
        headers = walk(segment.file(), start, segment.size_bytes)
        for header in reversed([header for header in headers if header.producer_id >= 0]):
            state.remember_earlier(header)
        bytes_left -= segment.size_bytes
        if bytes_left <= 0:
            break
    return True


def _restore(state: ProducerState, snapshots: ProducerSnapshots, newest: int) -> Offset:
    for offset in snapshots.offsets():
        if offset <= newest:
            entries = snapshots.read(offset)
            if entries is not None:
                state.restore(entries)
                return offset
    return Offset(0)


def _replay(segment: Segment, state: ProducerState, start: int) -> list[AbortedTransaction]:
    aborted: list[AbortedTransaction] = []
    file = segment.file()
    position, _ = segment.locate(start)
    for header in walk(file, position, segment.size_bytes):
        if header.producer_id < 0:
            continue
        is_control = header.attributes & CONTROL_BIT
        ended = state.record(read_batch(file, header) if is_control else header)
        if ended is not None and ended.is_aborted:
            aborted.append(state.aborted(ended))
    return aborted
