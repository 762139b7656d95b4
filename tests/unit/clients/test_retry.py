"""What is tried again, and how often."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.clients.address import Address
from ottla.clients.failures import NoBrokerReachable, TopicNotFound
from ottla.clients.retry import RetryPolicy, retry
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.net.client_connection import ConnectionLost, NotABroker

AT_ONCE = RetryPolicy(attempts_max=5, first_wait_s=0.0)


class Flaky:
    """Fails with the given errors, one a call, then succeeds."""

    def __init__(self, *errors: OttlaError) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_a_retriable_error_is_tried_again() -> None:
    flaky = Flaky(RequestFailed(ErrorCode.NOT_LEADER_OR_FOLLOWER), ConnectionLost("b:1"))
    assert asyncio.run(retry(AT_ONCE, flaky)) == "done"
    assert flaky.calls == 3


@pytest.mark.parametrize(
    "error",
    [
        RequestFailed(ErrorCode.INVALID_CONFIG),
        TopicNotFound("t"),
        NotABroker("b:1", b"HTTP/1.1"),
        NoBrokerReachable([(Address("b", 1), ConnectionLost("b:1"))]),
    ],
)
def test_what_will_not_change_is_not_tried_again(error: OttlaError) -> None:
    flaky = Flaky(error)
    with pytest.raises(type(error)):
        asyncio.run(retry(AT_ONCE, flaky))
    assert flaky.calls == 1


def test_a_cluster_that_answered_before_may_be_restarting() -> None:
    flaky = Flaky(NoBrokerReachable([], was_reachable=True))
    assert asyncio.run(retry(AT_ONCE, flaky)) == "done"


def test_the_attempts_are_limited() -> None:
    flaky = Flaky(*[RequestFailed(ErrorCode.NOT_CONTROLLER) for _ in range(50)])
    with pytest.raises(RequestFailed):
        asyncio.run(retry(AT_ONCE, flaky))
    assert flaky.calls == AT_ONCE.attempts_max


def test_the_whole_time_is_limited() -> None:
    impatient = RetryPolicy(attempts_max=50, first_wait_s=10.0, longest_wait_s=10.0, total_s=1.0)
    flaky = Flaky(*[RequestFailed(ErrorCode.NOT_CONTROLLER) for _ in range(50)])
    with pytest.raises(RequestFailed):
        asyncio.run(retry(impatient, flaky))
    assert flaky.calls == 1


def test_something_is_done_before_each_repetition() -> None:
    errors: list[OttlaError] = []

    async def remember(error: OttlaError) -> None:
        errors.append(error)

    flaky = Flaky(RequestFailed(ErrorCode.NOT_CONTROLLER))
    asyncio.run(retry(AT_ONCE, flaky, before_again=remember))
    assert [error.code for error in errors] == [ErrorCode.NOT_CONTROLLER]


@given(st.integers(1, 60), st.floats(0.0, 1.0, exclude_max=True))
def test_waits_grow_up_to_a_limit_and_never_vanish(failures: int, spread: float) -> None:
    policy = RetryPolicy()
    wait_s = policy.wait_s(failures, spread=spread)
    assert policy.first_wait_s / 2 < wait_s <= policy.longest_wait_s
    assert policy.wait_s(failures + 1) >= policy.wait_s(failures)
