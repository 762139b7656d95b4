"""Clients that take and never give back: slow, silent, many, gone. Others are served meanwhile."""

import contextlib
import resource
import select
import socket
import struct
from collections.abc import Callable, Iterator
from random import Random

import pytest

from support.batches import batch
from support.broker_process import BrokerProcess
from support.eventually import eventually
from support.good_client import GoodClient
from support.requests import (
    API_VERSIONS,
    FETCH,
    METADATA,
    PRODUCE,
    FetchPlace,
    FetchQuestion,
    a_topic,
    fetch_body,
    produce,
    produce_body,
    read_produced,
    supported_versions,
)
from support.wire import Connection, array, frame, int8, int32, request_header

NewName = Callable[[], str]
OwnBroker = Callable[..., BrokerProcess]

MEGABYTE = 1 << 20
IDLE_CONNECTIONS, SLOW_CONNECTIONS, ANNOUNCING_CONNECTIONS = 5_000, 300, 100
GROWTH_BYTES_MAX = 150 * MEGABYTE
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture
def many_files() -> None:
    """Raise this process's limit on open files; the broker raises its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < IDLE_CONNECTIONS + 1_000:
        pytest.skip(f"only {hard} open files are permitted here")
    wanted = max(IDLE_CONNECTIONS + 1_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def connections(bootstrap: str, count: int) -> Iterator[list[Connection]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Connection(bootstrap)) for _ in range(count)]


def resident(broker: BrokerProcess | None) -> int:
    return broker.resident_bytes() if broker else 0


def test_five_thousand_idle_connections_disturb_nobody(
    bootstrap: str,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    many_files: None,
) -> None:
    before = resident(shared_broker)
    with connections(bootstrap, IDLE_CONNECTIONS) as idle:
        good_client.still_works()
        assert supported_versions(idle[0])
        assert supported_versions(idle[-1])
        assert resident(shared_broker) - before < GROWTH_BYTES_MAX
    good_client.still_works()


def test_half_a_frame_and_then_byte_by_byte(bootstrap: str, good_client: GoodClient) -> None:
    whole = frame(request_header(API_VERSIONS, 0, 3))
    with connections(bootstrap, SLOW_CONNECTIONS) as slow:
        for at in range(len(whole) - 1):
            for connection in slow:
                connection.send_bytes(whole[at : at + 1])
            if at % 5 == 0:
                good_client.still_works()
        for connection in slow:
            connection.send_bytes(whole[-1:])
        for connection in slow:
            assert connection.receive()[0] == 3


def test_announced_megabytes_are_not_reserved_before_they_come(
    bootstrap: str, good_client: GoodClient, shared_broker: BrokerProcess | None
) -> None:
    if shared_broker is None:
        pytest.skip("Apache Kafka reserves what is announced, and runs out of memory")
    before = resident(shared_broker)
    with connections(bootstrap, ANNOUNCING_CONNECTIONS) as announcing:
        for connection in announcing:
            connection.send_bytes(int32(90 * MEGABYTE) + b"\0" * 1000)
        good_client.still_works()
        assert resident(shared_broker) - before < GROWTH_BYTES_MAX


def send_while_taken(connection: Connection, data: bytes, times: int) -> int:
    """Send again and again without reading until the broker takes no more; returns how often."""
    connection.socket.setblocking(False)
    pending = memoryview(data)
    for sent in range(times):
        pending = memoryview(data)
        while pending:
            if not select.select([], [connection.socket], [], 0.5)[1]:
                return sent
            try:
                pending = pending[connection.socket.send(pending) :]
            except BlockingIOError:
                continue
            except ConnectionError:
                return sent  # the broker gave up on us: as good as waiting
    return times


def test_answers_nobody_reads_do_not_pile_up(
    bootstrap: str,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    new_name: NewName,
) -> None:
    with Connection(bootstrap) as connection:
        for _ in range(20):
            a_topic(connection, new_name(), partitions=50)
    before = resident(shared_broker)
    ask_all = frame(request_header(METADATA, 8, 1) + array(None) + int8(0) * 3)
    with Connection(bootstrap) as rude:
        send_while_taken(rude, ask_all * 100, times=300)
        good_client.still_works()
        assert resident(shared_broker) - before < GROWTH_BYTES_MAX


def test_fetched_data_nobody_reads_does_not_pile_up(
    bootstrap: str,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    new_name: NewName,
) -> None:
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
        for _ in range(20):
            produce(connection, {(topic, 0): batch([b"v" * 900_000])})
    before = resident(shared_broker)
    question = FetchQuestion((FetchPlace(topic, 0, 0, bytes_max=50 * MEGABYTE),))
    ask = frame(request_header(FETCH, 11, 1) + fetch_body(question, 11))
    with connections(bootstrap, 10) as rude:
        for connection in rude:
            send_while_taken(connection, ask, times=50)
        good_client.still_works()
        assert resident(shared_broker) - before < GROWTH_BYTES_MAX


def test_a_thousand_pipelined_requests_are_all_answered(
    bootstrap: str, good_client: GoodClient, new_name: NewName
) -> None:
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
        body = produce_body({(topic, 0): batch([b"v"])}, version=8)
        sent = [request_header(PRODUCE, 8, number) + body for number in range(1_000)]
        connection.send_bytes(b"".join(frame(one) for one in sent))
        for number in range(1_000):
            answered, reader = connection.receive()
            assert answered == number
            assert read_produced(reader, 8)[topic, 0].base_offset == number


def test_clients_that_vanish_in_the_middle_of_a_request_leave_nothing_behind(
    bootstrap: str,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    new_name: NewName,
) -> None:
    random, topic = Random(3), new_name()
    with Connection(bootstrap) as connection:
        a_topic(connection, topic)
        body = produce_body({(topic, 0): batch([b"v" * 50_000])}, version=8)
    whole = frame(request_header(PRODUCE, 8, 1) + body)
    held = shared_broker.open_files() if shared_broker else 0
    for number in range(200):
        with Connection(bootstrap) as connection:
            connection.send_bytes(whole[: random.randrange(1, len(whole))])
            if number % 2:
                reset_on_close(connection)
    good_client.still_works()
    if shared_broker:
        eventually(lambda: shared_broker.open_files() <= held + 5, "descriptors are given back")


def test_clients_that_vanish_in_the_middle_of_an_answer_leave_nothing_behind(
    bootstrap: str,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    new_name: NewName,
) -> None:
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
        for _ in range(10):
            produce(connection, {(topic, 0): batch([b"v" * 900_000])})
    question = FetchQuestion((FetchPlace(topic, 0, 0, bytes_max=20 * MEGABYTE),))
    held = shared_broker.open_files() if shared_broker else 0
    for number in range(60):
        with Connection(bootstrap) as connection:
            connection.send(FETCH, 11, fetch_body(question, 11))
            connection.socket.recv(1 + number * 1000)
            if number % 2:
                reset_on_close(connection)
    good_client.still_works()
    if shared_broker:
        eventually(lambda: shared_broker.open_files() <= held + 5, "descriptors are given back")


def test_clients_that_vanish_while_their_fetch_waits_leave_nothing_behind(
    bootstrap: str,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    new_name: NewName,
) -> None:
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
    place = FetchPlace(topic, 0, 0)
    question = FetchQuestion((place,), wait_ms_max=600_000)
    held = shared_broker.open_files() if shared_broker else 0
    for _ in range(200):
        with Connection(bootstrap) as connection:
            connection.send(FETCH, 11, fetch_body(question, 11))
    if shared_broker:
        eventually(lambda: shared_broker.open_files() <= held + 5, "descriptors are given back")
    with Connection(bootstrap) as connection:
        assert produce(connection, {(topic, 0): batch([b"x"])})[topic, 0].error_code == 0


def reset_on_close(connection: Connection) -> None:
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)


def test_connections_beyond_the_limit_are_turned_away_and_others_served(
    own_broker: OwnBroker,
) -> None:
    broker = own_broker(settings={"max.connections": "50"})
    with (
        GoodClient(broker.bootstrap_servers, "good") as good,
        contextlib.ExitStack() as stack,
    ):
        crowd = []
        for _ in range(300):
            with contextlib.suppress(ConnectionError):
                crowd.append(stack.enter_context(Connection(broker.bootstrap_servers)))
        assert answered(crowd) <= 50
        good.still_works()
        for connection in crowd:
            connection.close()
        eventually(lambda: served(broker.bootstrap_servers), "a place for a newcomer")
        good.still_works()
    assert "Traceback" not in broker.errors()


def answered(crowd: list[Connection]) -> int:
    """How many of the connections get an answer while others get none or are closed."""
    for connection in crowd:
        with contextlib.suppress(OSError):
            connection.send(API_VERSIONS, 0, b"")
    waiting, count = {connection.socket for connection in crowd}, 0
    while waiting and (ready := select.select(list(waiting), [], [], 1.0)[0]):
        for one in ready:
            waiting.discard(one)
            with contextlib.suppress(ConnectionError):
                count += bool(one.recv(1 << 16))
    return count


def served(bootstrap: str) -> bool:
    with Connection(bootstrap, timeout_seconds=2) as connection:
        return bool(supported_versions(connection))
