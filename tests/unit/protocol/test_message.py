"""Version ranges, as declarations write them."""

from __future__ import annotations

import pytest

from ottla.protocol.message import VERSION_MAX, VersionRange, parse_versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0+", VersionRange(0, VERSION_MAX)),
        ("3-12", VersionRange(3, 12)),
        ("4", VersionRange(4, 4)),
    ],
)
def test_a_range_is_read_as_it_is_written(text: str, expected: VersionRange) -> None:
    assert parse_versions(text) == expected


def test_none_holds_no_version() -> None:
    assert list(parse_versions("none").numbers()) == []
    assert 0 not in parse_versions("none")


def test_both_ends_of_a_range_are_in_it() -> None:
    versions = parse_versions("3-12")
    assert [version in versions for version in (2, 3, 12, 13)] == [False, True, True, False]
    assert list(versions.numbers()) == list(range(3, 13))
