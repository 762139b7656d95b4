"""kafka-python pinned to the brokers of the past, from 0.8 on, speaks with ours as with those."""

from collections.abc import Callable

import pytest

from support.clients.face import Reading, Sending, ToSend
from support.clients.kafka_python import CAN_WRITE_OLD_LZ4, KafkaPythonClient
from support.requests import FETCH, supported_versions
from support.wire import Connection

NewName = Callable[[], str]

VERSIONS = [
    (0, 8, 0),
    (0, 8, 2),
    (0, 9),
    (0, 10, 0),
    (0, 10, 1),
    (0, 10, 2),
    (0, 11),
    (1, 0),
    (1, 1),
    (2, 0),
    (2, 1),
    (2, 3),
    (2, 4),
    (2, 6),
    (2, 8),
    (3, 3),
    (3, 6),
    (3, 9),
    (4, 0),
    (4, 3),
]
HEADERS_SINCE = TIMESTAMPED_OFFSETS_SINCE = (0, 11)


@pytest.fixture(params=VERSIONS, ids=lambda version: ".".join(map(str, version)))
def version(request: pytest.FixtureRequest, connection: Connection) -> tuple[int, ...]:
    lowest, _ = supported_versions(connection)[FETCH]
    if lowest >= 4 and request.param < (0, 11):
        pytest.skip("this broker no longer speaks the formats of those years")
    return tuple(request.param)


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_an_old_client_writes_and_reads(
    bootstrap: str, version: tuple[int, ...], codec: str, new_name: NewName
) -> None:
    if codec == "lz4" and version < (0, 10) and not (CAN_WRITE_OLD_LZ4 and version >= (0, 8, 2)):
        pytest.skip("this client cannot write lz4 for brokers so old")
    client, topic = KafkaPythonClient(bootstrap, version), new_name()
    client.create_topic(topic, partitions=2)
    headers = (("h", b"1"),) if version >= HEADERS_SINCE else ()
    sent = [
        ToSend(b"value %d " % number * 9, b"k", headers, partition=number % 2)
        for number in range(40)
    ]
    how = Sending(codec=codec, idempotent=version >= (0, 11))
    offsets = client.produce(topic, sent, how)
    assert offsets == [number // 2 for number in range(40)]
    received = client.consume(topic, {0: 0, 1: 0}, Reading(count=40))
    for partition in (0, 1):
        own = [record for record in received if record.partition == partition]
        assert [record.offset for record in own] == list(range(20))
        wished = [record.value for record in sent if record.partition == partition]
        assert [record.value for record in own] == wished
        assert {(record.key, record.headers) for record in own} == {(b"k", headers)}
    assert client.offset_range(topic, 1) == (0, 20)


def test_a_new_client_reads_what_the_old_one_wrote_and_the_reverse(
    bootstrap: str, version: tuple[int, ...], new_name: NewName
) -> None:
    old, new, topic = (
        KafkaPythonClient(bootstrap, version),
        KafkaPythonClient(bootstrap),
        new_name(),
    )
    new.create_topic(topic)
    old.produce(topic, [ToSend(b"from the old", b"k")], Sending(idempotent=False))
    new.produce(topic, [ToSend(b"from the new", b"k", (("h", b"1"),))], Sending(codec="gzip"))
    for reader in (old, new):
        values = [record.value for record in reader.consume(topic, {0: 0}, Reading(count=2))]
        assert values == [b"from the old", b"from the new"]
