"""The requests of classic groups on a raw socket, in their last versions before tagged fields.

FindCoordinator 1, JoinGroup 5, SyncGroup 3, Heartbeat 3, OffsetCommit 7, OffsetFetch 5.
"""

from collections.abc import Iterable, Mapping

import pytest

from support.eventually import eventually
from support.requests import Place, supported_versions
from support.wire import Connection, Reader, array, int8, int32, int64, nullable_bytes, string

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
CONSUMER_GROUP_HEARTBEAT = 68
NONE, MEMBER_ID_REQUIRED = 0, 79
LOADING = {14, 15, 16}  # COORDINATOR_LOAD_IN_PROGRESS, _NOT_AVAILABLE, NOT_COORDINATOR
NO_MEMBER = (-1, "")

Membership = tuple[int, str]  # a generation and a member id


class ConnectionEnded(Exception):
    """The broker went away in the middle of a question."""


def need_consumer_protocol(bootstrap: str) -> None:
    """Skip the test where the broker has only classic groups."""
    with Connection(bootstrap) as connection:
        if CONSUMER_GROUP_HEARTBEAT not in supported_versions(connection):
            pytest.skip("the broker does not offer ConsumerGroupHeartbeat")


def await_coordinator(connection: Connection, group: str) -> None:
    """Wait until the broker says who coordinates the group."""

    def is_found() -> bool:
        try:
            reader = connection.call(FIND_COORDINATOR, 1, string(group) + int8(0))
        except OSError as gone:
            # Waiting on would not bring this connection back.
            raise ConnectionEnded(f"while a coordinator of {group} was asked for") from gone
        reader.int32()
        return reader.int16() == NONE

    eventually(is_found, f"a coordinator of {group}")


def join_alone(connection: Connection, group: str, *, session_timeout_ms: int) -> Membership:
    """Become the only member of a group, through join and sync."""
    member = ""
    for _ in range(2):
        body = string(group) + int32(session_timeout_ms) + int32(10_000) + string(member)
        body += string(None) + string("consumer")
        body += array([string("range") + nullable_bytes(b"anything")])
        reader = connection.call(JOIN_GROUP, 5, body)
        reader.int32()
        error, generation = reader.int16(), reader.int32()
        reader.string(), reader.string()
        member = str(reader.string())
        if error != MEMBER_ID_REQUIRED:
            break
    assert error == NONE, f"JoinGroup answered {error}"
    plan = array([string(member) + nullable_bytes(b"everything")])
    body = string(group) + int32(generation) + string(member) + string(None) + plan
    reader = connection.call(SYNC_GROUP, 3, body)
    reader.int32()
    error = reader.int16()
    assert error == NONE, f"SyncGroup answered {error}"
    return generation, member


def heartbeat(connection: Connection, group: str, membership: Membership) -> int:
    """The error code of a heartbeat."""
    generation, member = membership
    body = string(group) + int32(generation) + string(member) + string(None)
    reader = connection.call(HEARTBEAT, 3, body)
    reader.int32()
    return reader.int16()


def commit_body(group: str, membership: Membership, positions: Mapping[Place, int]) -> bytes:
    """An OffsetCommit of one position for each place."""
    generation, member = membership
    topics = [
        string(topic) + array([int32(partition) + int64(position) + int32(-1) + string("")])
        for (topic, partition), position in positions.items()
    ]
    return string(group) + int32(generation) + string(member) + string(None) + array(topics)


def read_committed(reader: Reader) -> set[int]:
    """The error codes in an answer to an OffsetCommit."""
    reader.int32()
    errors = set()
    for _ in range(reader.count()):
        reader.string()
        for _ in range(reader.count()):
            reader.int32()
            errors.add(reader.int16())
    reader.end()
    return errors


def committed_offsets(
    connection: Connection, group: str, places: Iterable[Place]
) -> dict[Place, int]:
    """What OffsetFetch says, once the group is loaded; -1 where nothing was committed."""
    wanted = array([string(topic) + array([int32(number)]) for topic, number in places])

    def fetch() -> dict[Place, int] | None:
        reader = connection.call(OFFSET_FETCH, 5, string(group) + wanted)
        reader.int32()
        found, errors = _read_offsets(reader)
        errors.add(reader.int16())
        reader.end()
        assert errors <= LOADING | {NONE}, f"OffsetFetch answered {errors}"
        return found if errors == {NONE} else None

    return eventually(fetch, f"the offsets of {group}")


def _read_offsets(reader: Reader) -> tuple[dict[Place, int], set[int]]:
    found: dict[Place, int] = {}
    errors = set()
    for _ in range(reader.count()):
        topic = str(reader.string())
        for _ in range(reader.count()):
            place = topic, reader.int32()
            found[place] = reader.int64()
            reader.int32(), reader.string()
            errors.add(reader.int16())
    return found, errors
