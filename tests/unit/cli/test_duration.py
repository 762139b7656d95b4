"""Lengths of time as people write them."""

import pytest

from ottla.cli.duration import duration_text, parse_duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0s", 0), ("250ms", 250), ("90s", 90_000), ("1h30m", 5_400_000), ("2d", 172_800_000)],
)
def test_a_length_of_time_is_read(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "15", "m", "1h 30m", "-5m", "1.5h"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_duration_ms(text) is None


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(-1, "0s"), (999, "0s"), (61_000, "1m 1s"), (90_061_000, "1d 1h"), (3_600_000, "1h")],
)
def test_a_length_of_time_is_told_in_its_two_greatest_units(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text
