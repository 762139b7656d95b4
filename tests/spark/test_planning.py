"""What is read when, and by which task: decisions without a cluster."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition
from ottla.spark.admission import admit, is_too_little
from ottla.spark.bounds import Bound, WithoutMatch, check_covers, resolved
from ottla.spark.offset_ranges import OffsetRange, cut, ranges_between
from ottla.spark.offsets import EARLIEST, LATEST, from_topic_offsets, to_topic_offsets
from ottla.spark.options import TriggerLimits
from ottla.spark.pushdown import push

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OFFSETS = st.integers(0, 10_000)


@given(
    st.dictionaries(st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 9)), OFFSETS)
)
def test_offsets_survive_json(offsets: dict[TopicPartition, int]) -> None:
    assert from_topic_offsets(to_topic_offsets(offsets)) == offsets


SIZES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 9)),
    st.tuples(OFFSETS, OFFSETS),
)


@given(SIZES, st.integers(1, 20_000))
def test_a_limited_batch_takes_all_it_may_and_never_goes_back(
    sizes: dict[TopicPartition, tuple[int, int]], offsets_max: int
) -> None:
    start = {where: first for where, (first, _) in sizes.items()}
    latest = {where: first + more for where, (first, more) in sizes.items()}

    end = admit(start, latest, offsets_max)

    taken = {where: end[where] - start[where] for where in sizes}
    assert all(0 <= taken[where] <= sizes[where][1] for where in sizes)
    assert sum(taken.values()) == min(offsets_max, sum(more for _, more in sizes.values()))


def test_a_small_partition_is_not_left_behind_by_a_large_one() -> None:
    end = admit({A0: 0, A1: 0}, {A0: 1_000_000, A1: 1}, 10)
    assert end == {A0: 9, A1: 1}


def test_too_little_waits_until_the_delay_is_over() -> None:
    limits = TriggerLimits(offsets_min=100, delay_ms_max=1_000)
    assert is_too_little(99, limits, waited_ms=999)
    assert not is_too_little(99, limits, waited_ms=1_000)
    assert not is_too_little(100, limits, waited_ms=0)
    assert not is_too_little(0, TriggerLimits(), waited_ms=0)


def test_empty_and_backward_ranges_are_not_read() -> None:
    assert ranges_between({A0: 5, A1: 7, B0: 9}, {A0: 5, A1: 8, B0: 2}) == [OffsetRange(A1, 7, 8)]


@given(
    st.lists(st.tuples(OFFSETS, st.integers(0, 500)), max_size=6),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 300),
)
def test_pieces_cover_their_ranges_exactly(
    spans: list[tuple[int, int]], tasks_min: int | None, records_max: int | None
) -> None:
    ranges = [
        OffsetRange(TopicPartition("t", number), start, start + size)
        for number, (start, size) in enumerate(spans)
    ]

    pieces = cut(ranges, tasks_min=tasks_min, records_max=records_max)

    for whole in ranges:
        mine = [piece for piece in pieces if piece.where == whole.where]
        offsets = [offset for piece in mine for offset in range(piece.start, piece.end)]
        assert offsets == list(range(whole.start, whole.end))
    assert all(piece.size > 0 for piece in pieces)
    if records_max is not None:
        assert all(piece.size <= records_max for piece in pieces)


def test_at_least_so_many_tasks_are_made_of_large_ranges() -> None:
    pieces = cut([OffsetRange(A0, 0, 900), OffsetRange(A1, 0, 100)], tasks_min=10, records_max=None)
    assert [piece.where for piece in pieces].count(A0) == 9
    assert len(pieces) == 10


def test_bounds_become_offsets() -> None:
    ranges = {A0: (5, 10), A1: (0, 7)}
    assert resolved(Bound(everywhere=EARLIEST), ranges, {}) == {A0: 5, A1: 0}
    assert resolved(Bound(everywhere=LATEST), ranges, {}) == {A0: 10, A1: 7}
    assert resolved(Bound(offsets={A0: 6, A1: EARLIEST}), ranges, {}) == {A0: 6, A1: 0}


def test_a_time_after_the_last_record_fails_or_begins_at_the_end() -> None:
    ranges, at_times = {A0: (5, 10)}, {A0: -1}
    with pytest.raises(ConfigError, match="no record so young"):
        resolved(Bound(timestamp_ms=9), ranges, at_times)
    latest = Bound(timestamp_ms=9, without_match=WithoutMatch.LATEST)
    assert resolved(latest, ranges, at_times) == {A0: 10}


def test_offsets_must_name_every_partition_and_no_other() -> None:
    with pytest.raises(ConfigError, match="a-1 is not in it"):
        check_covers(Bound(offsets={A0: 1}, option="startingOffsets"), {A0, A1})
    with pytest.raises(ConfigError, match="b-0 is not among"):
        check_covers(Bound(offsets={A0: 1, B0: 1}, option="startingOffsets"), {A0})


def test_filters_on_offset_and_partition_choose_ranges_and_are_done() -> None:
    not_null = IsNotNull(("offset",))
    wanted, left = push(
        [
            not_null,
            GreaterThanOrEqual(("offset",), 3),
            LessThan(("offset",), 8),
            EqualTo(("partition",), 1),
            In(("topic",), ("a", "b")),
        ]
    )
    assert left == [not_null]
    assert wanted.narrowed(OffsetRange(A1, 0, 100)) == OffsetRange(A1, 3, 8)
    assert wanted.narrowed(OffsetRange(A0, 0, 100)).size == 0
    assert wanted.narrowed(OffsetRange(TopicPartition("c", 1), 0, 100)).size == 0


def test_every_comparison_of_offsets_is_exact() -> None:
    whole = OffsetRange(A0, 0, 10)
    cases = {
        GreaterThan(("offset",), 3): (4, 10),
        GreaterThanOrEqual(("offset",), 3): (3, 10),
        LessThan(("offset",), 3): (0, 3),
        LessThanOrEqual(("offset",), 3): (0, 4),
        EqualTo(("offset",), 3): (3, 4),
    }
    for each, (start, end) in cases.items():
        wanted, left = push([each])
        assert left == []
        assert wanted.narrowed(whole) == OffsetRange(A0, start, end)


def test_a_filter_on_time_only_moves_the_start_and_spark_looks_again() -> None:
    young = GreaterThan(("timestamp",), datetime(2024, 1, 1, tzinfo=UTC))
    old = LessThan(("timestamp",), datetime(2024, 1, 2, tzinfo=UTC))
    wanted, left = push([young, old])
    assert wanted.youngest_ms == 1_704_067_200_000
    assert left == [young, old]


def test_filters_on_the_value_are_sparks() -> None:
    each = EqualTo(("value",), b"x")
    wanted, left = push([each])
    assert left == [each]
    assert wanted.narrowed(OffsetRange(A0, 0, 9)).size == 9
