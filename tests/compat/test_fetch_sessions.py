"""Fetch sessions: only what changed travels, and epochs keep both ends in step."""

from collections.abc import Callable
from dataclasses import replace

from support.batches import batch, read_records
from support.requests import (
    NEW_SESSION_EPOCH,
    NO_SESSION_EPOCH,
    FetchAnswer,
    FetchPlace,
    FetchQuestion,
    a_topic,
    fetch,
    produce,
)
from support.wire import Connection

NewName = Callable[[], str]

FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH = 70, 71
UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_OUT_OF_RANGE = 1
SESSION_EPOCH_LAST = (1 << 31) - 1


def opened(connection: Connection, *places: FetchPlace) -> tuple[FetchQuestion, FetchAnswer]:
    """Open a session over the places; the question returned continues it without naming any."""
    answer = fetch(connection, FetchQuestion(places, session_epoch=NEW_SESSION_EPOCH))
    assert answer.error_code == 0
    assert answer.session_id != 0
    follow = FetchQuestion((), session_id=answer.session_id, session_epoch=1)
    return follow, answer


def test_a_full_fetch_opens_a_session_and_answers_every_partition(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), partitions=3)
    _, answer = opened(connection, *(FetchPlace(topic, at, 0) for at in range(3)))
    assert set(answer.partitions) == {(topic, at) for at in range(3)}


def test_an_incremental_fetch_answers_only_what_changed(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), partitions=3)
    follow, _ = opened(connection, *(FetchPlace(topic, at, 0) for at in range(3)))
    assert fetch(connection, follow).partitions == {}
    produce(connection, {(topic, 1): batch([b"new"])})
    answer = fetch(connection, replace(follow, session_epoch=2, wait_ms_max=5_000))
    assert set(answer.partitions) == {(topic, 1)}
    assert [one.value for one in read_records(answer.partitions[topic, 1].records)] == [b"new"]


def test_a_named_partition_updates_its_position_in_the_session(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), partitions=2)
    produce(connection, {(topic, 0): batch([b"a", b"b"]), (topic, 1): batch([b"c"])})
    follow, answer = opened(connection, FetchPlace(topic, 0, 0), FetchPlace(topic, 1, 0))
    assert all(part.records for part in answer.partitions.values())
    moved = (FetchPlace(topic, 0, 2), FetchPlace(topic, 1, 1))
    assert not any(
        part.records
        for part in fetch(connection, replace(follow, places=moved)).partitions.values()
    )
    produce(connection, {(topic, 0): batch([b"third"])})
    answer = fetch(connection, replace(follow, session_epoch=2, wait_ms_max=5_000))
    records = read_records(answer.partitions[topic, 0].records)
    assert [(one.offset, one.value) for one in records] == [(2, b"third")]
    assert (topic, 1) not in answer.partitions


def test_partitions_join_and_leave_a_session(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name(), partitions=2)
    follow, _ = opened(connection, FetchPlace(topic, 0, 0))
    joined = replace(follow, places=(FetchPlace(topic, 1, 0),))
    assert set(fetch(connection, joined).partitions) == {(topic, 1)}
    left = replace(follow, session_epoch=2, forgotten=((topic, 0),))
    assert fetch(connection, left).error_code == 0
    produce(connection, {(topic, 0): batch([b"unheard"]), (topic, 1): batch([b"heard"])})
    answer = fetch(connection, replace(follow, session_epoch=3, wait_ms_max=5_000))
    assert set(answer.partitions) == {(topic, 1)}


def test_a_wrong_epoch_is_refused(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    follow, _ = opened(connection, FetchPlace(topic, 0, 0))
    assert fetch(connection, follow).error_code == 0
    for epoch in (1, 3, 17, SESSION_EPOCH_LAST):
        answer = fetch(connection, replace(follow, session_epoch=epoch))
        assert answer.error_code == INVALID_FETCH_SESSION_EPOCH
        assert answer.partitions == {}
    assert fetch(connection, replace(follow, session_epoch=2)).error_code == 0


def test_an_unknown_session_is_refused(connection: Connection) -> None:
    answer = fetch(connection, FetchQuestion((), session_id=2_000_000_011, session_epoch=4))
    assert answer.error_code == FETCH_SESSION_ID_NOT_FOUND


def test_the_final_epoch_closes_the_session(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    follow, _ = opened(connection, FetchPlace(topic, 0, 0))
    closing = replace(follow, session_epoch=NO_SESSION_EPOCH, places=(FetchPlace(topic, 0, 0),))
    answer = fetch(connection, closing)
    assert (answer.error_code, answer.session_id) == (0, 0)
    assert fetch(connection, follow).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_epoch_zero_with_an_id_replaces_the_session(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), partitions=2)
    follow, _ = opened(connection, FetchPlace(topic, 0, 0))
    places = (FetchPlace(topic, 1, 0),)
    again = replace(follow, session_epoch=NEW_SESSION_EPOCH, places=places)
    answer = fetch(connection, again)
    assert answer.error_code == 0
    assert set(answer.partitions) == {(topic, 1)}
    assert answer.session_id not in (0, follow.session_id)
    assert fetch(connection, follow).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_without_a_session_gets_none(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    answer = fetch(connection, FetchQuestion((FetchPlace(topic, 0, 0),)))
    assert answer.session_id == 0
    assert set(answer.partitions) == {(topic, 0)}


def test_partition_errors_are_repeated_in_every_incremental_answer(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    follow, answer = opened(connection, FetchPlace(topic, 0, 10))
    assert answer.partitions[topic, 0].error_code == OFFSET_OUT_OF_RANGE
    again = fetch(connection, follow)
    assert again.partitions[topic, 0].error_code == OFFSET_OUT_OF_RANGE


def test_a_session_lives_across_connections(
    connection: Connection, bootstrap: str, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    follow, _ = opened(connection, FetchPlace(topic, 0, 0))
    produce(connection, {(topic, 0): batch([b"x"])})
    with Connection(bootstrap) as another:
        answer = fetch(another, replace(follow, wait_ms_max=5_000))
    assert set(answer.partitions) == {(topic, 0)}
