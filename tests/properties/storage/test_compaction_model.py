"""Compaction against a dict: whatever was written, each key's latest value is what is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ottla.records.builder import ProducerStamp
from ottla.storage.compaction import begin_compaction, finish_compaction
from ottla.storage.log import Log
from ottla.storage.transaction_index import AbortedTransactions
from unit.storage.logs import (
    World,
    append,
    batches_from,
    end_transaction,
    keyed,
    settings,
)

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"a key longer than a digest"])
RECORDS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=20)), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), RECORDS),
        st.tuples(st.just("commit"), RECORDS),
        st.tuples(st.just("abort"), RECORDS),
        st.tuples(st.just("roll"), st.none()),
        st.tuples(st.just("compact"), st.integers(1, 8)),
        st.tuples(st.just("wait"), st.integers(1, 2000)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=40,
)


def committed(log: Log) -> dict[int, tuple[bytes, bytes | None]]:
    """Key and value by offset, as a reader of committed records sees them."""
    aborted = AbortedTransactions(log.segments.aborted_transactions(0, log.end_offset))
    return {
        record.offset: (record.key or b"", record.value)
        for found in batches_from(log, log.start_offset)
        if not found.is_control and not (found.is_transactional and aborted.holds(found))
        for record in found.records()
    }


@given(STEPS, st.sampled_from([300, 100_000]))
@hypothesis_settings(max_examples=150, deadline=None)
def test_the_latest_value_of_every_key_is_left(steps: list, segment_bytes: int):
    world = World(
        settings(
            cleanup_policy=frozenset({"compact"}),
            min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=1000,
            segment_bytes=segment_bytes,
        )
    )
    log = world.open()
    latest: dict[bytes, tuple[int, bytes | None]] = {}
    sequence = 0
    for name, argument in steps:
        if name == "append":
            note(latest, log.end_offset, argument)
            append(log, keyed(*argument))
        elif name in ("commit", "abort"):
            if name == "commit":
                note(latest, log.end_offset, argument)
            append(log, keyed(*argument, producer=ProducerStamp(7, 0, sequence, True)))
            sequence += len(argument)
            end_transaction(log, 7, commit=name == "commit")
        elif name == "roll":
            log.roll()
        elif name == "wait":
            world.clock.ms += argument
        elif name == "compact":
            compact(log, world.clock.ms, argument)
        else:
            log = restarted(world, log, clean=argument)
        log.advance_high_watermark(log.end_offset)
        check(log, latest, sequence)


def note(latest: dict, base_offset: int, records: list) -> None:
    for number, (key, value) in enumerate(records):
        latest[key] = (base_offset + number, value)


def compact(log: Log, now_ms: int, map_entries_max: int) -> None:
    job = begin_compaction(log, now_ms, map_entries_max=map_entries_max)
    if job is not None:
        job.run(lambda _: None)
        assert finish_compaction(log, job) is not None


def restarted(world: World, log: Log, *, clean: bool) -> Log:
    first_dirty_offset = log.first_dirty_offset
    if clean:
        log.close()
    reopened = world.open(clean=clean)
    assert reopened.end_offset == log.end_offset
    reopened.first_dirty_offset = first_dirty_offset
    return reopened


def check(log: Log, latest: dict, sequence: int) -> None:
    found = committed(log)
    left = {key: (offset, value) for offset, (key, value) in sorted(found.items())}
    for key, (offset, value) in latest.items():
        if value is None:
            # A tombstone may be gone after its time, but then nothing older may be left.
            assert left.get(key, (offset, None)) == (offset, None)
        else:
            assert left[key] == (offset, value)
    assert all(left[key][0] <= latest[key][0] for key in left)
    entry = log.producers.get(7)
    assert (entry.last_sequence + 1 if entry and entry.last_batch else 0) == sequence
    assert log.last_stable_offset == log.end_offset
