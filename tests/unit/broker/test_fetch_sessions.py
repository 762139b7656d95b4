"""Fetch sessions: who has one, whose it is, and what is told in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.fetch_sessions import (
    EPOCH_MAX,
    EVICT_IDLE_MS,
    Fetch,
    FetchSessions,
    FetchTarget,
)
from ottla.errors import ErrorCode, RequestFailed
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

ID = b"an id of a topic"
LATER_MS = EVICT_IDLE_MS + 1


def a_request(
    *offsets: int,
    session: int = 0,
    epoch: int = 0,
    gone: list[int] | None = None,
    replica: int = -1,
) -> FetchRequest:
    """Asks for partitions 0, 1, ... of one topic at these offsets; a negative one is not named."""
    named = [FetchPartition(n, fetch_offset=at) for n, at in enumerate(offsets) if at >= 0]
    return FetchRequest(
        replica_state=ReplicaState(replica),
        session_id=session,
        session_epoch=epoch,
        topics=[FetchTopic("topic", ID, named)] if named else [],
        forgotten_topics_data=[ForgottenTopic("topic", ID, gone)] if gone else [],
    )


def begin(
    sessions: FetchSessions, request: FetchRequest, *, now_ms: int = 0, uses_ids: bool = False
) -> Fetch:
    return sessions.begin(request, uses_ids=uses_ids, now_ms=now_ms)


def opened(sessions: FetchSessions, *, count: int = 1, now_ms: int = 0, replica: int = -1) -> int:
    """The id of a new session over so many partitions; zero where there was no room."""
    return begin(sessions, a_request(*[0] * count, replica=replica), now_ms=now_ms).session_id


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(RequestFailed) as caught:
        call()
    return caught.value.code


def places(fetch: Fetch) -> dict[int, int]:
    return {target.partition: target.fetch_offset for target in fetch.targets}


def test_a_session_keeps_what_it_was_told_until_it_is_told_otherwise() -> None:
    sessions = FetchSessions(10)
    session = opened(sessions, count=3)
    fetch = begin(sessions, a_request(-1, 7, session=session, epoch=1, gone=[2]))
    assert fetch.is_incremental
    assert places(fetch) == {0: 0, 1: 7}
    fetch = begin(sessions, a_request(-1, -1, -1, 5, session=session, epoch=2))
    assert places(fetch) == {0: 0, 1: 7, 3: 5}


def test_only_the_next_epoch_is_taken() -> None:
    sessions = FetchSessions(10)
    session = opened(sessions)
    for epoch in (2, EPOCH_MAX):
        wrong = a_request(9, session=session, epoch=epoch)
        assert (
            code_of(lambda wrong=wrong: begin(sessions, wrong))
            is ErrorCode.INVALID_FETCH_SESSION_EPOCH
        )
    assert places(begin(sessions, a_request(session=session, epoch=1))) == {0: 0}
    again = a_request(session=session, epoch=1)
    assert code_of(lambda: begin(sessions, again)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_after_the_last_epoch_comes_the_first() -> None:
    sessions = FetchSessions(10)
    fetch = begin(sessions, a_request(0))
    assert fetch.session is not None
    fetch.session.epoch = EPOCH_MAX
    begin(sessions, a_request(session=fetch.session_id, epoch=EPOCH_MAX))
    assert begin(sessions, a_request(session=fetch.session_id, epoch=1)).session is not None


def test_names_and_ids_do_not_mix() -> None:
    sessions = FetchSessions(10)
    session = begin(sessions, a_request(0), uses_ids=True).session_id
    by_name = a_request(session=session, epoch=1)
    assert code_of(lambda: begin(sessions, by_name)) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    fetch = begin(sessions, by_name, uses_ids=True)
    assert [target.topic for target in fetch.targets] == [ID]


def test_an_unknown_session_is_refused() -> None:
    lost = a_request(session=5, epoch=1)
    assert code_of(lambda: begin(FetchSessions(10), lost)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_ends_by_the_final_epoch_and_is_replaced_by_the_first() -> None:
    sessions = FetchSessions(10)
    session = opened(sessions)
    fetch = begin(sessions, a_request(3, session=session, epoch=-1))
    assert (fetch.session, places(fetch), len(sessions)) == (None, {0: 3}, 0)
    session = opened(sessions)
    fetch = begin(sessions, a_request(3, session=session))
    assert len(sessions) == 1
    assert fetch.session_id not in (0, session)


def test_a_session_that_has_forgotten_everything_ends() -> None:
    sessions = FetchSessions(10)
    session = opened(sessions)
    fetch = begin(sessions, a_request(session=session, epoch=1, gone=[0]))
    assert (fetch.session_id, fetch.targets, len(sessions)) == (0, (), 0)


def test_nothing_asked_for_makes_no_session() -> None:
    assert begin(FetchSessions(10), a_request()).session is None


def test_a_client_that_missed_a_restart_does_not_meet_another_clients_session() -> None:
    ids = {opened(FetchSessions(10)) for _ in range(20)}
    assert len(ids) == 20


# --- room ---


def test_without_room_a_client_is_served_without_a_session() -> None:
    sessions = FetchSessions(1)
    first = opened(sessions)
    fetch = begin(sessions, a_request(5))
    assert (fetch.session_id, places(fetch)) == (0, {0: 5})
    assert begin(sessions, a_request(session=first, epoch=1)).session_id == first
    assert opened(FetchSessions(0)) == 0


def test_the_session_idle_for_longest_makes_room_once_it_is_idle_for_long() -> None:
    sessions = FetchSessions(2)
    first, second = opened(sessions), opened(sessions)
    begin(sessions, a_request(session=first, epoch=1), now_ms=EVICT_IDLE_MS - 1)
    assert opened(sessions, now_ms=EVICT_IDLE_MS - 1) == 0
    assert opened(sessions, now_ms=EVICT_IDLE_MS) != 0
    lost = a_request(session=second, epoch=1)
    assert code_of(lambda: begin(sessions, lost)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert begin(sessions, a_request(session=first, epoch=2)).session_id == first


def busy(sessions: FetchSessions, session: int) -> None:
    """The session was used just before LATER_MS."""
    begin(sessions, a_request(session=session, epoch=1), now_ms=LATER_MS - 1)


def test_a_larger_session_takes_the_place_of_a_smaller_one_that_had_its_time() -> None:
    sessions = FetchSessions(2)
    for count in (2, 3):
        busy(sessions, opened(sessions, count=count))
    assert opened(sessions, count=2, now_ms=LATER_MS) == 0
    assert opened(sessions, count=3, now_ms=LATER_MS) != 0
    assert sorted(len(each) for each in sessions._sessions.values()) == [3, 3]


def test_a_young_session_is_nobodys_to_take() -> None:
    sessions = FetchSessions(1)
    opened(sessions, now_ms=LATER_MS)
    assert opened(sessions, count=9, replica=2, now_ms=LATER_MS + 1) == 0


def test_a_follower_goes_before_a_consumer_and_never_the_other_way_round() -> None:
    sessions = FetchSessions(1)
    busy(sessions, opened(sessions, count=5))
    follower = opened(sessions, count=1, replica=2, now_ms=LATER_MS)
    assert follower != 0
    begin(sessions, a_request(session=follower, epoch=1), now_ms=2 * LATER_MS)
    assert opened(sessions, count=9, now_ms=2 * LATER_MS + 1) == 0


# --- what is told ---


def test_a_partition_is_told_again_only_with_news() -> None:
    target = FetchTarget("topic", FetchPartition(0, fetch_offset=0, partition_max_bytes=1))
    quiet = PartitionData(0, 0, 5, 4, 1)
    assert target.is_news(quiet), "the first time all of it is"
    assert not target.is_news(quiet)
    for news in (
        PartitionData(0, 0, 6, 4, 1),
        PartitionData(0, 0, 6, 5, 1),
        PartitionData(0, 0, 6, 5, 2),
        PartitionData(0, 0, 6, 5, 2, records=b"records"),
        PartitionData(0, 3, 6, 5, 2),
    ):
        assert target.is_news(news)


def test_a_partition_that_gave_records_is_read_last_the_next_time() -> None:
    sessions = FetchSessions(1)
    fetch = begin(sessions, a_request(0, 0, 0))
    assert fetch.session is not None
    fetch.session.served(fetch.targets[0])
    fetch = begin(sessions, a_request(session=fetch.session_id, epoch=1))
    assert [target.partition for target in fetch.targets] == [1, 2, 0]
