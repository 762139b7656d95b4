"""`--from`, as people write it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.starting_point import (
    BEGINNING,
    END,
    StartingPoint,
    StartKind,
    parse_starting_point,
    resolve,
)
from ottla.errors import ConfigError
from ottla.model.ids import Offset

NOW_MS = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("beginning", BEGINNING),
        ("Earliest", BEGINNING),
        ("end", END),
        ("latest", END),
        ("0", StartingPoint(StartKind.OFFSET, 0)),
        ("42", StartingPoint(StartKind.OFFSET, 42)),
        ("-10", StartingPoint(StartKind.LAST, 10)),
        ("@1700000000000", StartingPoint(StartKind.TIME, 1_700_000_000_000)),
        ("1969-12-31T23:59:59.999Z", StartingPoint(StartKind.TIME, 0)),
        ("-1h", StartingPoint(StartKind.TIME, NOW_MS - 3_600_000)),
        ("-1h30m", StartingPoint(StartKind.TIME, NOW_MS - 5_400_000)),
        ("-2d", StartingPoint(StartKind.TIME, NOW_MS - 172_800_000)),
        ("-250ms", StartingPoint(StartKind.TIME, NOW_MS - 250)),
        ("2026-01-31T12:00:00Z", StartingPoint(StartKind.TIME, NOW_MS)),
        ("2026-01-31T13:00+01:00", StartingPoint(StartKind.TIME, NOW_MS)),
    ],
)
def test_a_starting_point_is_read_as_people_write_it(text: str, start: StartingPoint) -> None:
    assert parse_starting_point(text, now_ms=NOW_MS) == start


def test_a_time_without_a_zone_is_local() -> None:
    local = datetime(2026, 1, 31, 12)
    start = parse_starting_point("2026-01-31 12:00", now_ms=NOW_MS)
    assert start == StartingPoint(StartKind.TIME, int(local.timestamp() * 1000))


@pytest.mark.parametrize(
    "text", ["", "yesterdayish", "1h", "-h", "12:99", "--5", "@", "4.5", "@" + 19 * "9", 5000 * "9"]
)
def test_anything_else_is_refused_with_what_is_possible(text: str) -> None:
    with pytest.raises(ConfigError, match="beginning"):
        parse_starting_point(text, now_ms=NOW_MS)


def at(start: StartingPoint, first: int, end: int, found: int | None = None) -> int:
    at_time = {} if found is None else {0: Offset(found)}
    return resolve(start, {0: (Offset(first), Offset(end))}, at_time)[0]


def test_each_kind_means_its_place_in_the_partition() -> None:
    assert at(BEGINNING, 10, 20) == 10
    assert at(END, 10, 20) == 20
    assert at(StartingPoint(StartKind.OFFSET, 15), 10, 20) == 15
    assert at(StartingPoint(StartKind.LAST, 3), 10, 20) == 17
    assert at(StartingPoint(StartKind.TIME, 1), 10, 20, found=12) == 12


def test_a_time_after_the_last_record_is_the_end() -> None:
    assert at(StartingPoint(StartKind.TIME, 1), 10, 20) == 20


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 10**12))
def test_no_offset_or_count_leads_out_of_the_partition(first: int, size: int, number: int) -> None:
    for kind in (StartKind.OFFSET, StartKind.LAST):
        assert first <= at(StartingPoint(kind, number), first, first + size) <= first + size
