"""A log against a plain list: any order of appends, rolls, reads, cuts, stops and power cuts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.records.builder import ProducerStamp
from ottla.storage.log import Log
from ottla.storage.retention import apply_retention
from unit.storage.logs import (
    DIRECTORY,
    NOW_MS,
    World,
    append,
    batch,
    batches_from,
    flush,
    settings,
    values,
)

AUXILIARY = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")


class LogAgainstList(RuleBasedStateMachine):
    """`model` maps offsets to values; `flushed` is what a power cut must not take."""

    @initialize(
        segment_bytes=st.sampled_from([600, 2000, 100_000]),
        index_interval_bytes=st.sampled_from([0, 150, 4096]),
    )
    def begin(self, segment_bytes: int, index_interval_bytes: int) -> None:
        chosen = replace(
            settings(segment_bytes=segment_bytes, retention_ms=-1),
            index_interval_bytes=index_interval_bytes,
        )
        self.world = World(chosen)
        self.log: Log = self.world.open()
        self.model: dict[int, bytes] = {}
        self.start = 0
        self.end = 0
        self.flushed = 0
        self.epoch = 0
        self.sequence = 0
        self.sizes: dict[str, int] | None = None

    # --- growing ---

    @rule(sizes=st.lists(st.integers(0, 80), min_size=1, max_size=4), late=st.integers(-50, 50))
    def append(self, sizes: list[int], late: int) -> None:
        data = [b"%d:" % (self.end + n) + b"x" * size for n, size in enumerate(sizes)]
        append(self.log, batch(*data, timestamp=NOW_MS + self.end + late), epoch=self.epoch)
        for value in data:
            self.model[self.end] = value
            self.end += 1

    @rule()
    def append_idempotently_twice(self) -> None:
        stamp = ProducerStamp(7, 0, self.sequence)
        for is_repeated in (False, True):
            done = self.log.append(batch(b"idem", producer=stamp), leader_epoch=self.epoch)
            assert (done.base_offset, done.is_duplicate) == (self.end, is_repeated)
        self.model[self.end] = b"idem"
        self.end += 1
        self.sequence += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def change_leader(self) -> None:
        self.epoch += 1
        self.log.assign_epoch(self.epoch)

    @rule()
    def flush(self) -> None:
        flush(self.log)
        self.flushed = self.end

    # --- shrinking ---

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        before = self.log.producers.get(7)
        offset = self.start + round((self.end - self.start) * share)
        self.log.truncate_to(offset)
        assert self.log.end_offset <= offset or offset >= self.end
        self.end = self.log.end_offset
        self.start = min(self.start, self.end)
        self.model = {o: v for o, v in self.model.items() if o < self.end}
        self.flush()  # what is cut off comes back after a power cut, unless that is synced
        self._forget_producer(before is not None)

    def _forget_producer(self, was_known: bool) -> None:
        entry = self.log.producers.get(7)
        assert was_known or entry is None
        self.sequence = entry.last_sequence + 1 if entry else 0

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.log.advance_high_watermark(self.end)
        self.start += round((self.end - self.start) * share)
        self.log.delete_records_before(self.start)
        apply_retention(self.log, NOW_MS)

    # --- stopping ---

    @rule()
    def stop_cleanly(self) -> None:
        self.log.close()
        self.flushed = self.end
        self._reopen(clean=True)

    @rule()
    def kill(self) -> None:
        self._reopen(clean=False)

    @rule(data=st.data(), suffix=st.sampled_from(AUXILIARY), clean=st.booleans())
    def lose_auxiliary_files(self, data: st.DataObject, suffix: str, clean: bool) -> None:
        self.log.close()
        self.flushed = self.end
        sizes = self.world.index_sizes()
        names = [name for name in self.world.names() if name.endswith(suffix)]
        for name in data.draw(st.sets(st.sampled_from(names))) if names else ():
            self.world.disk.remove(f"{DIRECTORY}/{name}")
        self._reopen(clean=clean, sizes=sizes if clean else None)

    @rule(data=st.data())
    def cut_the_power(self, data: st.DataObject) -> None:
        self.world.disk.lose_power(lambda n: data.draw(st.integers(0, n - 1)))
        epochs = self.log.epochs
        self.world.start_offset = self.start
        self._open(clean=False)
        assert self.flushed <= self.log.end_offset <= self.end
        self.end = self.log.end_offset
        assert self.log.epochs.started_before(self.end) == epochs.started_before(self.end)
        self.start = min(self.start, self.end)
        self.model = {o: v for o, v in self.model.items() if o < self.end}
        self._forget_producer(True)

    def _reopen(self, *, clean: bool, sizes: dict[str, int] | None = None) -> None:
        epochs = self.log.epochs
        self.world.start_offset = self.start
        self._open(clean=clean, sizes=sizes)
        assert self.log.end_offset == self.end
        assert self.log.epochs.started_before(self.end) == epochs.started_before(self.end)

    def _open(self, *, clean: bool, sizes: dict[str, int] | None = None) -> None:
        self.world.recovery_point = self.flushed
        self.log = self.world.open(clean=clean, sizes=sizes)

    # --- what is always true ---

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        log = self.log
        assert (log.start_offset, log.end_offset) == (self.start, self.end)
        kept = {offset: value for offset, value in self.model.items() if offset >= self.start}
        assert values(log) == kept
        entry = log.producers.get(7)
        assert (entry.last_sequence + 1 if entry else 0) == self.sequence

    @rule(share=st.floats(0, 1), end_share=st.floats(0, 1))
    def read(self, share: float, end_share: float) -> None:
        offset = self.start + round((self.end - self.start) * share)
        end = offset + round((self.end - offset) * end_share)
        found = batches_from(self.log, offset, end=end)
        if found:
            assert found[0].base_offset <= offset <= found[0].last_offset
            assert found[-1].last_offset < end
            assert all(one.is_intact() for one in found)
        else:
            assert offset == end or all(
                one.last_offset >= end for one in batches_from(self.log, offset)[:1]
            )

    @rule(timestamp=st.integers(NOW_MS - 60, NOW_MS + 300))
    def look_up_a_time(self, timestamp: int) -> None:
        expected = None
        for one in batches_from(self.log, self.start):
            for record in one.records():
                if record.offset >= self.start and record.timestamp >= timestamp:
                    expected = expected or record
        found = self.log.offset_for_timestamp(timestamp)
        assert (found and found.offset) == (expected and expected.offset)


LogAgainstList.TestCase.settings = hypothesis_settings(
    max_examples=40, stateful_step_count=25, deadline=None, report_multiple_bugs=False
)
test_a_log_behaves_like_a_list = LogAgainstList.TestCase
