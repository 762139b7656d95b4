"""The session's own deadline: doubted in time, confirmed by answers, ended by the store's word."""

from __future__ import annotations

import pytest

from ottla.cluster.session import PREVIOUS_SESSIONS_MAX, Session, SessionEvent


def a_session(asked_at_ms: int = 0) -> tuple[Session, list[SessionEvent]]:
    session = Session()
    session.begin(1, timeout_ms=1_000, asked_at_ms=asked_at_ms)
    events: list[SessionEvent] = []
    session.listeners.append(events.append)
    return session, events


def test_there_is_no_session_before_the_first_connection() -> None:
    assert not Session().is_alive(0)


def test_a_session_lives_for_nine_tenths_of_its_timeout_after_the_last_question_answered() -> None:
    session, events = a_session()
    assert session.is_alive(899)
    assert not session.is_alive(900)
    session.confirm(asked_at_ms=500)
    assert session.is_alive(1_399)
    assert not session.is_alive(1_400)
    assert events == []


def test_a_late_answer_to_an_early_question_takes_nothing_back() -> None:
    session, _ = a_session()
    session.confirm(asked_at_ms=500)
    session.confirm(asked_at_ms=100)
    assert session.is_alive(1_399)


def test_a_session_in_doubt_is_dead_until_something_asked_after_is_answered() -> None:
    session, events = a_session()
    session.doubt(899)
    session.doubt(900)
    session.doubt(950)
    session.confirm(asked_at_ms=850)
    assert not session.is_alive(951)
    session.confirm(asked_at_ms=960)
    assert session.is_alive(961)
    assert events == [SessionEvent.DOUBTED, SessionEvent.CONFIRMED]


def test_a_reconnection_with_the_same_session_confirms_it() -> None:
    session, events = a_session()
    session.doubt(900)
    session.begin(1, timeout_ms=2_000, asked_at_ms=1_000)
    assert session.is_alive(2_799)
    assert events == [SessionEvent.DOUBTED, SessionEvent.CONFIRMED]


def test_an_expired_session_is_followed_by_a_new_one() -> None:
    session, events = a_session()
    session.expire()
    session.expire()
    assert not session.is_alive(1)
    session.confirm(asked_at_ms=1)
    assert not session.is_alive(2)
    session.begin(2, timeout_ms=1_000, asked_at_ms=10)
    assert session.is_alive(20)
    assert session.id == 2
    assert session.was_own(1)
    assert not session.was_own(2)
    assert events == [SessionEvent.EXPIRED, SessionEvent.RENEWED]


def test_a_new_session_in_place_of_one_thought_alive_expires_that_one_first() -> None:
    session, events = a_session()
    session.begin(2, timeout_ms=1_000, asked_at_ms=10)
    assert events == [SessionEvent.EXPIRED, SessionEvent.RENEWED]


def test_a_failing_listener_keeps_nobody_else_from_hearing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session, events = a_session()

    def fails(event: SessionEvent) -> None:
        raise RuntimeError(event)

    session.listeners.insert(0, fails)
    session.expire()
    assert events == [SessionEvent.EXPIRED]
    assert "expired" in caplog.text


def test_a_session_without_end_lives_at_any_time() -> None:
    session = Session(1, never_ends=True)
    session.doubt(1 << 60)
    assert session.is_alive(1 << 60)


def test_only_so_many_former_sessions_are_remembered() -> None:
    session = Session()
    for number in range(1, PREVIOUS_SESSIONS_MAX + 3):
        session.begin(number, timeout_ms=1, asked_at_ms=0)
    assert not session.was_own(1)
    assert session.was_own(2)
