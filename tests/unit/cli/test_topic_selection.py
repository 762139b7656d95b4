"""Topics and their partitions on the command line."""

import click
import pytest

from ottla.cli.topic_selection import TopicSelection, matches, parse_selection
from ottla.model.ids import TopicPartition


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("orders", TopicSelection("orders")),
        ("orders:0", TopicSelection("orders", (0,))),
        ("a.b_c-d:0,2,5-7", TopicSelection("a.b_c-d", (0, 2, 5, 6, 7))),
        ("orders:3,3-4", TopicSelection("orders", (3, 4))),
    ],
)
def test_a_selection_is_read(text: str, selection: TopicSelection) -> None:
    assert parse_selection(text) == selection


@pytest.mark.parametrize(
    "text", ["", ":0", "orders:", "orders:x", "orders:1-", "orders:-1", "orders:5-3", "t:0-999999"]
)
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_selection(text)


def test_no_selection_matches_everything_and_one_only_its_own() -> None:
    assert matches([], TopicPartition("t", 9))
    selections = [TopicSelection("t", (1,)), TopicSelection("u")]
    assert [matches(selections, TopicPartition(*each)) for each in (("t", 1), ("u", 8))] == [
        True,
        True,
    ]
    assert not matches(selections, TopicPartition("t", 0))
