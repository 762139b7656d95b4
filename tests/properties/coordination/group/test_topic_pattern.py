"""Patterns of topics match what Python's own expressions match, in linear time, or are refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.group.topic_pattern import PATTERN_LENGTH_MAX, TopicPattern
from ottla.errors import ErrorCode, RequestFailed

atoms = st.sampled_from(
    ["a", "b", ".", "-", "[ab]", "[^a]", "[a-c.]", r"\.", r"\d", r"\w", r"[\d_]", "^", "$"]
)
marks = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?", "+?"])


def _repeat(pattern: str, mark: str) -> str:
    return pattern if pattern in "^$" else pattern + mark


patterns = st.recursive(
    st.builds(_repeat, atoms, marks),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, marks),
    ),
    max_leaves=8,
)
names = st.text("abc1._-", max_size=8)


@given(patterns, st.lists(names, max_size=5))
def test_it_matches_what_python_matches(pattern: str, tried: list[str]) -> None:
    ours, theirs = TopicPattern(pattern), re.compile(pattern)
    for name in tried:
        assert ours.matches(name) == bool(theirs.fullmatch(name))


@given(st.text(max_size=30), names)
def test_any_text_is_a_pattern_or_is_refused(pattern: str, name: str) -> None:
    try:
        matcher = TopicPattern(pattern)
    except RequestFailed:
        return
    assert matcher.matches(name) in (True, False)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("orders", "orders", "orders2"),
        ("orders.*", "orders.eu", "my-orders"),
        ("(?i)orders", "OrDers", "order"),
        ("(?i:o)rders", "Orders", "ORDERS"),
        ("(?P<region>eu|us)-.+", "eu-orders", "ap-orders"),
        (r"\Qa.b\E.", "a.bc", "axbc"),
        ("[[:alpha:]]+", "abc", "abc1"),
        ("[[:^digit:]]+", "abc", "abc1"),
        ("[]a]+", "aa", "b"),
        ("[a-]+", "a-a", "b"),
        (r"\Aorders\z", "orders", "orders1"),
        ("", "", "a"),
        ("a|", "", "b"),
    ],
)
def test_the_syntax_is_that_of_re2(pattern: str, yes: str, no: str) -> None:
    matcher = TopicPattern(pattern)
    assert matcher.matches(yes)
    assert not matcher.matches(no)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a)",
        "[a",
        "*a",
        "a**",
        "a{2}{3}",
        "a{3,2}",
        "a{1001}",
        "[b-a]",
        "\\",
        r"\b",
        r"\1",
        "(?=a)",
        "(?<=a)",
        "(?P<x",
        "[[:nothing:]]",
        "(((a{100}){100}){100})",
        "(" * 51 + ")" * 51,
        "a" * (PATTERN_LENGTH_MAX + 1),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(RequestFailed, match="cannot be used") as refusal:
        TopicPattern(pattern)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_would_make_others_backtrack_is_no_trouble() -> None:
    matcher = TopicPattern("(a+)+(.*)*.*.*.*x$")
    assert not matcher.matches("a" * 249)
    assert matcher.matches("a" * 248 + "x")
