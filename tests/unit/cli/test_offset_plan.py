"""What a reset would do, decided from what is committed and what there is."""

from ottla.cli.offset_plan import plan_exactly, plan_shift
from ottla.clients.group_offsets import CommittedOffset
from ottla.model.ids import LeaderEpoch, Offset, TopicPartition

ZERO, ONE, TWO = (TopicPartition("t", number) for number in range(3))
RANGES = {place: (Offset(10), Offset(20)) for place in (ZERO, ONE, TWO)}


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(Offset(offset))


def test_a_plan_tells_change_and_lag() -> None:
    first, second = plan_exactly({ONE: at(18), ZERO: at(12)}, {ONE: at(15)}, RANGES)
    assert (first.partition, first.before, first.change, first.lag) == (ZERO, None, None, 8)
    assert (second.partition, second.before, second.change, second.lag) == (ONE, 15, 3, 2)
    assert first.note == second.note == ""


def test_an_offset_outside_the_log_becomes_the_nearest_and_says_so() -> None:
    early, late = plan_exactly({ZERO: at(3), ONE: at(99)}, {}, RANGES)
    assert (early.after.offset, early.note) == (10, "3 is before the first offset")
    assert (late.after.offset, late.note) == (20, "99 is after the end")


def test_metadata_and_epoch_stay_with_their_offset_only() -> None:
    kept = CommittedOffset(Offset(12), LeaderEpoch(4), "note")
    moved = CommittedOffset(Offset(99), LeaderEpoch(4), "note")
    first, second = plan_exactly({ZERO: kept, ONE: moved}, {}, RANGES)
    assert first.after == kept
    assert second.after == CommittedOffset(Offset(20))


def test_a_shift_moves_only_what_was_committed() -> None:
    rows = plan_shift(-5, {ZERO: at(18), ONE: at(12)}, RANGES)
    assert [(row.partition, row.after.offset) for row in rows] == [(ZERO, 13), (ONE, 10)]
