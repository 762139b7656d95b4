"""Requests that are much work, or come in long queues: others are served meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.api import ApiKey
from support.batches import batch
from support.broker_process import BrokerProcess
from support.eventually import eventually
from support.good_client import GoodClient
from support.requests import METADATA, PRODUCE, a_topic, produce_body, read_produced
from support.wire import (
    Connection,
    array,
    frame,
    int8,
    int16,
    int32,
    int64,
    request_header,
    string,
)

MEGABYTE = 1 << 20
STALL_SECONDS_MAX = 2.0
"""Much more than a quiet machine shows."""


class Stalls:
    """Asks for the versions again and again, and notes the longest wait for an answer."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self.longest_seconds = 0.0

    def run(self) -> None:
        with Connection(self._bootstrap, timeout_seconds=120) as connection:
            while not self._is_over.wait(0.002):
                asked = monotonic()
                connection.call(ApiKey.API_VERSIONS, 0, b"")
                self.longest_seconds = max(self.longest_seconds, monotonic() - asked)

    def end(self) -> None:
        self._is_over.set()


@contextmanager
def stalls(bootstrap: str) -> Iterator[Stalls]:
    watching = Stalls(bootstrap)
    thread = threading.Thread(target=watching.run)
    thread.start()
    try:
        yield watching
    finally:
        watching.end()
        thread.join(150)


def test_two_slow_requests_do_not_stop_large_ones(
    bootstrap: str, good_client: GoodClient, new_name: Callable[[], str]
) -> None:
    slow = [Connection(bootstrap) for _ in range(2)]
    for connection in slow:
        connection.send_bytes(int32(100 * MEGABYTE) + b"\0" * (3 * MEGABYTE // 2))
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
        for size in (200_000, 900_000):
            body = produce_body({(topic, 0): batch([b"v" * size])}, version=8)
            assert read_produced(connection.call(PRODUCE, 8, body), 8)[topic, 0].error_code == 0
    for connection in slow:
        connection.close()


def test_many_slow_requests_do_not_stop_large_ones(
    bootstrap: str, good_client: GoodClient, new_name: Callable[[], str]
) -> None:
    slow = [Connection(bootstrap) for _ in range(150)]
    for connection in slow:
        connection.send_bytes(int32(100 * MEGABYTE) + b"\0" * 100_000)
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
        body = produce_body({(topic, 0): batch([b"v" * 900_000])}, version=8)
        assert read_produced(connection.call(PRODUCE, 8, body), 8)[topic, 0].error_code == 0
    for connection in slow:
        connection.close()


def test_long_queues_of_clients_that_leave_do_not_starve_others(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    bootstrap = own_broker().bootstrap_servers
    with Connection(bootstrap) as connection:
        for number in range(10):
            a_topic(connection, f"wide-{number}", partitions=50)
    ask_all = frame(request_header(METADATA, 8, 1) + array(None) + int8(0) * 3)
    with stalls(bootstrap) as seen:
        for _ in range(30):
            with Connection(bootstrap) as rude:
                rude.send_bytes(ask_all * 3_000)
        with Connection(bootstrap, timeout_seconds=120) as connection:
            connection.call(METADATA, 8, array([string("wide-0")]) + int8(0) * 3)
    assert seen.longest_seconds < STALL_SECONDS_MAX


def metadata_of_unknown(count: int) -> tuple[int, int, bytes]:
    names = [string(f"unknown-{number}") for number in range(count)]
    return METADATA, 8, array(names) + int8(0) * 3


def offsets_of_unknown(count: int) -> tuple[int, int, bytes]:
    partition = int32(7) + int64(-1)
    topic = string("unknown") + array([partition] * count)
    return ApiKey.LIST_OFFSETS, 1, int32(-1) + array([topic])


@pytest.mark.parametrize("ask", [metadata_of_unknown, offsets_of_unknown])
def test_long_lists_are_worked_off_in_turns(
    own_broker: Callable[..., BrokerProcess], ask: Callable[[int], tuple[int, int, bytes]]
) -> None:
    bootstrap = own_broker().bootstrap_servers
    with stalls(bootstrap) as seen:
        rude = [Connection(bootstrap, timeout_seconds=120) for _ in range(12)]
        for connection in rude:
            connection.send(*ask(99_000))
        for connection in rude:
            assert connection.receive()[1].remaining > 99_000
            connection.close()
    assert seen.longest_seconds < STALL_SECONDS_MAX


@pytest.mark.parametrize("version", [10, 11])
def test_a_topic_id_in_a_version_that_asks_by_name_is_refused(
    bootstrap: str, good_client: GoodClient, version: int
) -> None:
    by_id = b"\x02" + b"\x07" * 16 + b"\x00" + b"\x00"  # one topic: its id, a null name, no tags
    flags = b"\x00" * (3 if version == 10 else 2)
    with Connection(bootstrap) as connection:
        connection.send(METADATA, version, by_id + flags + b"\x00", flexible=True)
        _, reader = connection.receive()
        assert int16(ErrorCode.INVALID_REQUEST) in reader.buffer


def test_a_commit_that_does_not_fit_into_a_batch_is_told_so(
    bootstrap: str, good_client: GoodClient, new_name: Callable[[], str]
) -> None:
    group = new_name()
    partition = int32(0) + int64(1) + string("m" * 4_000)
    with Connection(bootstrap, timeout_seconds=60) as connection:
        topic = a_topic(connection, new_name())
        topics = [string(topic) + array([partition] * 3_500)]
        body = string(group) + int32(-1) + string("") + int64(-1) + array(topics)

        def is_told() -> bool:
            connection.call(ApiKey.FIND_COORDINATOR, 1, string(group) + int8(0))
            reader = connection.call(ApiKey.OFFSET_COMMIT, 2, body)
            code = reader.buffer[-2:]
            assert code != int16(ErrorCode.UNKNOWN_SERVER_ERROR)
            return code == int16(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)

        eventually(is_told, "the coordinator says what is wrong")
