"""Bytes pass at their rate, and replicas are throttled that a topic names."""

from __future__ import annotations

from ottla.broker.throttle import UNLIMITED, Throttle, is_throttled


def test_a_seconds_worth_passes_at_once_and_then_what_the_time_allows() -> None:
    throttle = Throttle()
    assert throttle.may_pass(100, 0)
    throttle.passed(100)
    assert not throttle.may_pass(100, 0)
    assert throttle.may_pass(100, 10)
    throttle.passed(51)
    assert not throttle.may_pass(100, 510)
    assert throttle.may_pass(100, 520)


def test_rest_is_not_saved_up_beyond_a_second() -> None:
    throttle = Throttle()
    assert throttle.may_pass(100, 0)
    assert throttle.may_pass(100, 1_000_000)
    throttle.passed(100)
    assert not throttle.may_pass(100, 1_000_000)


def test_a_rate_that_was_raised_counts_at_once() -> None:
    throttle = Throttle()
    assert throttle.may_pass(100, 0)
    throttle.passed(1000)
    assert not throttle.may_pass(100, 1000)
    assert throttle.may_pass(10_000, 1100)
    assert throttle.may_pass(UNLIMITED, 1100)


def test_replicas_are_throttled_by_name_or_all() -> None:
    assert not is_throttled((), 0, 1)
    assert is_throttled(("*",), 7, 1)
    assert is_throttled(("0:1", "2:3"), 2, 3)
    assert not is_throttled(("0:1", "2:3"), 2, 1)
