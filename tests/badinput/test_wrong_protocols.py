"""Peers that do not speak Kafka, or not this Kafka: refused at once, and nobody else notices."""

import http.client
import ssl
from collections.abc import Callable
from random import Random

import pytest

from support.broker_process import BrokerProcess
from support.good_client import GoodClient
from support.requests import METADATA, a_topic, produce_body, supported_versions
from support.wire import Connection, PeerClosed, frame, int16, int32, request_header

UNSUPPORTED_VERSION = 35
API_VERSIONS = 18


def closes_or_answers(connection: Connection) -> str:
    """What the broker does with a bad request; silence is the one thing it may not do."""
    try:
        connection.receive_frame()
    except (PeerClosed, ConnectionError):
        return "closed"
    return "answered"


def test_an_http_client_gets_no_answer_and_no_hang(bootstrap: str, good_client: GoodClient) -> None:
    host, port = bootstrap.rsplit(":", 1)
    client = http.client.HTTPConnection(host, int(port), timeout=10)
    client.request("GET", "/")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        client.getresponse()
    client.close()


def test_a_tls_client_is_refused_at_its_hello(bootstrap: str, good_client: GoodClient) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        Connection(bootstrap) as connection,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(connection.socket)


@pytest.mark.parametrize(
    "length",
    [(1 << 31) - 1, 200 << 20, -1, -(1 << 31), 0, 1, 7],
    ids=["2 GB", "200 MB", "-1", "lowest", "0", "1", "7"],
)
def test_impossible_lengths_close_the_connection(
    bootstrap: str, length: int, good_client: GoodClient
) -> None:
    with Connection(bootstrap) as connection:
        connection.send_bytes(int32(length) + b"\0" * min(max(length, 0), 100))
        assert connection.is_closed_by_peer()


def test_garbage_is_not_served(bootstrap: str, good_client: GoodClient) -> None:
    random = Random(1)
    for _ in range(50):
        with Connection(bootstrap) as connection:
            try:
                connection.send_bytes(random.randbytes(random.randint(1, 2000)))
                connection.socket.shutdown(1)
            except OSError:
                continue  # closed while we were still sending
            drain(connection)


def drain(connection: Connection) -> None:
    """Read to the end; a broker that neither answers nor closes lets the socket time out."""
    try:
        while connection.socket.recv(1 << 16):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize("api_key", [-1, 4, 5, 6, 7, 1000, 32767, -32768])
def test_unknown_apis_are_refused(bootstrap: str, api_key: int, good_client: GoodClient) -> None:
    with Connection(bootstrap) as connection:
        connection.send(api_key, 0, b"")
        assert closes_or_answers(connection) in ("closed", "answered")


def test_unsupported_versions_of_every_api_are_refused(
    bootstrap: str, good_client: GoodClient
) -> None:
    with Connection(bootstrap) as connection:
        ranges = supported_versions(connection)
    for api_key, (lowest, highest) in ranges.items():
        if api_key == API_VERSIONS:
            continue
        for version in {lowest - 1, highest + 1, 32767, -1, -32768} - {highest}:
            with Connection(bootstrap) as connection:
                connection.send(api_key, version, b"\0" * 20, flexible=True)
                assert closes_or_answers(connection) in ("closed", "answered")


@pytest.mark.parametrize("version", [99, -1, 32767])
def test_unknown_api_versions_versions_get_the_ranges(bootstrap: str, version: int) -> None:
    with Connection(bootstrap) as connection:
        connection.send(API_VERSIONS, version, b"\x04abc\x021\0", flexible=True)
        _, reader = connection.receive()
        assert reader.int16() == UNSUPPORTED_VERSION


def test_headers_that_lie_are_refused(bootstrap: str, good_client: GoodClient) -> None:
    start = int16(METADATA) + int16(1) + int32(1)
    bad_headers = [
        start,  # no client id at all
        start + int16(500) + b"short",
        start + int16(-2),
        start + int16(3) + b"\xff\xfe\xfd",  # not UTF-8
        start[:5],
    ]
    for header in bad_headers:
        with Connection(bootstrap) as connection:
            connection.send_bytes(frame(header))
            connection.socket.shutdown(1)
            drain(connection)


def test_a_bad_request_does_not_swallow_the_answers_before_it(
    bootstrap: str, good_client: GoodClient
) -> None:
    with Connection(bootstrap) as connection:
        good = frame(request_header(API_VERSIONS, 0, 1))
        bad = frame(request_header(1000, 0, 2))
        connection.send_bytes(good + good + bad)
        for _ in range(2):
            assert connection.receive()[0] == 1


@pytest.mark.parametrize(
    "records",
    [None, b"", b"x" * 5, b"\0" * 61, b"\xff" * 100],
    ids=["null", "empty", "short", "zeros", "ones"],
)
def test_produced_nonsense_is_refused_per_partition(
    bootstrap: str,
    records: bytes | None,
    good_client: GoodClient,
    shared_broker: BrokerProcess | None,
    new_name: Callable[[], str],
) -> None:
    if records is None and shared_broker is None:
        pytest.skip("Apache Kafka never answers a partition without records")
    with Connection(bootstrap) as connection:
        topic = a_topic(connection, new_name())
        body = produce_body({(topic, 0): records}, version=8)
        connection.send(0, 8, body)
        assert closes_or_answers(connection) in ("closed", "answered")
