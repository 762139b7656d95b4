"""Records that expand far: looked at beside the event loop, in order, and only up to a limit."""

import time
from collections.abc import Callable

import pytest

from ottla.errors import ErrorCode
from support.good_client import GoodClient
from support.lying_batches import GZIP, LZ4, ZSTD, Lie, Rec, squeezed, varint
from support.requests import (
    API_VERSIONS,
    PRODUCE,
    FetchPlace,
    a_topic,
    fetch_one,
    produce,
    produce_body,
    read_produced,
)
from support.wire import Connection

BOMB_BYTES = 120 << 20
BOMBS = 20
STALL_SECONDS_MAX = 3.0  # on a machine that others use too; it was 36 s


def a_batch(value_bytes: int, codec: int = ZSTD) -> bytes:
    """One record of so many zeros."""
    record = Rec(value=varint(value_bytes) + bytes(value_bytes))
    payload = squeezed(codec) if codec else bytes
    return Lie((record,), payload=payload, attributes=codec, count=1, last_delta=0).encode()


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_a_bomb_is_refused_where_records_are_read(
    connection: Connection, new_name: Callable[[], str], codec: int
) -> None:
    topic = a_topic(connection, new_name(), cleanup_policy="compact", max_message_bytes="2000000")
    answer = produce(connection, {(topic, 0): a_batch(BOMB_BYTES, codec)})[topic, 0]
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert "expands to more than" in str(answer.error_message)


def test_bombs_do_not_stop_others(
    connection: Connection, bootstrap: str, new_name: Callable[[], str], good_client: GoodClient
) -> None:
    topic = a_topic(connection, new_name(), cleanup_policy="compact")
    body = produce_body({(topic, 0): a_batch(BOMB_BYTES)}, version=8)
    for _ in range(BOMBS):
        connection.send(PRODUCE, 8, body)
    with Connection(bootstrap) as other:
        began = time.monotonic()
        other.call(API_VERSIONS, 0, b"")
        assert time.monotonic() - began < STALL_SECONDS_MAX
    for _ in range(BOMBS):
        _, reader = connection.receive()
        assert read_produced(reader, 8)[topic, 0].error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("configs", [{"compression_type": "lz4"}, {"records_check": "all"}])
def test_records_that_take_long_are_not_overtaken_by_later_ones(
    connection: Connection, new_name: Callable[[], str], configs: dict[str, str]
) -> None:
    topic = a_topic(connection, new_name(), **configs)
    slow, quick = a_batch(8 << 20), a_batch(20, codec=0)
    sent = [
        connection.send(PRODUCE, 8, produce_body({(topic, 0): each}, version=8))
        for each in [slow, quick, quick, slow, quick]
    ]
    for expected, correlation_id in enumerate(sent):
        answered, reader = connection.receive()
        produced = read_produced(reader, 8)[topic, 0]
        assert (answered, produced.error_code) == (correlation_id, 0)
        assert produced.base_offset == expected
    assert fetch_one(connection, FetchPlace(topic, 0, 4)).error_code == 0
