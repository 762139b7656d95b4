"""What the wire promises, seen from a raw socket: old versions, order, errors per partition."""

from collections.abc import Callable

import pytest

from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.builder import BatchBuilder
from support.batches import Sequenced, batch, magic_of, message_set, now_ms, read_records
from support.clients.kafka_python import CAN_WRITE_OLD_LZ4
from support.eventually import eventually
from support.requests import (
    API_VERSIONS,
    EARLIEST,
    FETCH,
    LATEST,
    METADATA,
    PRODUCE,
    FetchPlace,
    FetchQuestion,
    a_topic,
    epoch_end,
    fetch,
    fetch_body,
    fetch_one,
    init_producer_id,
    list_offset,
    metadata,
    produce,
    produce_body,
    read_fetched,
    read_produced,
    supported_versions,
)
from support.typed_connection import TypedConnection
from support.wire import Connection, Reader, array, frame, int8, request_header, string

NewName = Callable[[], str]

OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION = 1, 2, 3
INVALID_REQUIRED_ACKS, UNSUPPORTED_VERSION = 21, 35
OUT_OF_ORDER_SEQUENCE, INVALID_PRODUCER_EPOCH = 45, 47
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH = 74, 75
INVALID_RECORD = 87
GZIP, LZ4 = 1, 3


def needs(connection: Connection, api_key: int, version: int) -> None:
    """Skip where the broker no longer speaks the version (Apache Kafka 4 dropped many)."""
    lowest, highest = supported_versions(connection).get(api_key, (1, 0))
    dropped_silently = api_key == PRODUCE and supported_versions(connection)[FETCH][0] > 0
    if not lowest <= version <= highest or (dropped_silently and version < 3):
        pytest.skip(f"this broker does not speak version {version} of API {api_key}")


def values_from(connection: Connection, topic: str, *, version: int = 11) -> list[bytes | None]:
    fetched = fetch_one(connection, FetchPlace(topic, 0, 0), version=version)
    assert fetched.error_code == 0
    return [record.value for record in read_records(fetched.records)]


@pytest.mark.parametrize("version", range(9))
def test_every_produce_version_appends(
    connection: Connection, version: int, new_name: NewName
) -> None:
    needs(connection, PRODUCE, version)
    topic = a_topic(connection, new_name())
    values: list[bytes | None] = [b"a", b"b", b"c"]
    data = batch(values) if version >= 3 else message_set(values, magic=version // 2)
    for base_offset in (0, 3):
        answer = produce(connection, {(topic, 0): data}, version=version)[topic, 0]
        assert (answer.error_code, answer.base_offset) == (0, base_offset)
    assert values_from(connection, topic) == values + values


@pytest.mark.parametrize("codec", [0, GZIP, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_converted_and_read_by_new_fetches(
    connection: Connection, magic: int, codec: int, new_name: NewName
) -> None:
    needs(connection, PRODUCE, 0)
    if (magic, codec) == (0, LZ4) and not CAN_WRITE_OLD_LZ4:
        pytest.skip("kafka-python cannot write the lz4 of format 0 without xxhash")
    topic, stamp = a_topic(connection, new_name()), now_ms() - 1000
    values: list[bytes | None] = [b"one " * 40, b"", None, b"four " * 40]
    data = message_set(values, magic=magic, key=b"k", timestamp_ms=stamp, codec=codec)
    answer = produce(connection, {(topic, 0): data}, version=2 if magic else 1)
    assert answer[topic, 0].error_code == 0
    records = read_records(fetch_one(connection, FetchPlace(topic, 0, 0)).records)
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == [0, 1, 2, 3]
    assert {record.key for record in records} == {b"k"}
    stamps = [record.timestamp_ms for record in records]
    assert stamps == ([stamp + at for at in range(4)] if magic else [-1] * 4)


@pytest.mark.parametrize("version", range(12))
def test_every_fetch_version_reads(connection: Connection, version: int, new_name: NewName) -> None:
    needs(connection, FETCH, version)
    topic = a_topic(connection, new_name())
    produce(connection, {(topic, 0): batch([b"a", None, b"c"], key=b"k")})
    produce(connection, {(topic, 0): batch([b"d" * 100] * 3, codec=GZIP)})
    fetched = fetch_one(connection, FetchPlace(topic, 0, 0), version=version)
    assert (fetched.error_code, fetched.high_watermark) == (0, 6)
    assert [record.value for record in read_records(fetched.records)] == [
        b"a",
        None,
        b"c",
        *[b"d" * 100] * 3,
    ]
    assert [record.offset for record in read_records(fetched.records)] == list(range(6))
    assert magic_of(fetched.records) == {0 if version < 2 else 1 if version < 4 else 2}


@pytest.mark.parametrize("version", [0, 2])
def test_down_converted_fetches_start_in_the_middle_of_a_batch(
    connection: Connection, version: int, new_name: NewName
) -> None:
    needs(connection, FETCH, version)
    topic = a_topic(connection, new_name())
    produce(connection, {(topic, 0): batch([b"%d" % at for at in range(10)], codec=LZ4)})
    fetched = fetch_one(connection, FetchPlace(topic, 0, 7), version=version)
    wanted = [record for record in read_records(fetched.records) if record.offset >= 7]
    assert [(record.offset, record.value) for record in wanted] == [
        (at, b"%d" % at) for at in (7, 8, 9)
    ]


@pytest.mark.parametrize("version", range(6))
def test_every_list_offsets_version_finds_both_ends(
    connection: Connection, version: int, new_name: NewName
) -> None:
    needs(connection, 2, version)
    topic = a_topic(connection, new_name())
    produce(connection, {(topic, 0): batch([b"a", b"b"])})
    assert list_offset(connection, (topic, 0), EARLIEST, version=version).offset == 0
    assert list_offset(connection, (topic, 0), LATEST, version=version).offset == 2


@pytest.mark.parametrize("version", range(9))
def test_every_metadata_version_describes_the_topic(
    connection: Connection, version: int, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name(), partitions=3)
    answer = metadata(connection, [topic], version=version)
    error_code, leaders = answer.topics[topic]
    assert error_code == 0
    assert sorted(leaders) == [0, 1, 2]
    assert set(leaders.values()) <= set(answer.brokers)
    assert topic in metadata(connection, None, version=version).topics
    if version >= 1:
        assert metadata(connection, [], version=version).topics == {}


def test_acks_zero_has_no_response(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    body = produce_body({(topic, 0): batch([b"silent"])}, version=8, acks=0)
    for _ in range(5):
        connection.send(PRODUCE, 8, body)
    asked = connection.send(METADATA, 8, array([string(topic)]) + int8(0) * 3)
    answered, _ = connection.receive()
    assert answered == asked
    assert values_from(connection, topic) == [b"silent"] * 5


def test_responses_come_in_the_order_of_the_requests(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    place, sent = (topic, 0), []
    for number in range(60):
        if number % 3 == 0:
            body = produce_body({place: batch([b"%d" % number])}, version=8)
            sent.append((PRODUCE, connection.send(PRODUCE, 8, body)))
        elif number % 3 == 1:
            question = FetchQuestion((FetchPlace(topic, 0, 0),), wait_ms_max=50)
            sent.append((FETCH, connection.send(FETCH, 11, fetch_body(question, 11))))
        else:
            sent.append((API_VERSIONS, connection.send(API_VERSIONS, 0, b"")))
    bases = []
    for api_key, correlation_id in sent:
        answered, reader = connection.receive()
        assert answered == correlation_id
        if api_key == PRODUCE:
            bases.append(read_produced(reader, 8)[place].base_offset)
        elif api_key == FETCH:
            seen = read_fetched(reader, 11).partitions[place]
            assert seen.high_watermark >= len(bases), "a fetch sees what was produced before it"
    assert bases == list(range(20))


def test_a_waiting_fetch_does_not_let_a_later_answer_overtake_it(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    question = FetchQuestion((FetchPlace(topic, 0, 0),), wait_ms_max=300)
    waiting = connection.send(FETCH, 11, fetch_body(question, 11))
    asked = connection.send(API_VERSIONS, 0, b"")
    assert [connection.receive()[0] for _ in range(2)] == [waiting, asked]


def test_one_bad_partition_does_not_spoil_the_others(
    connection: Connection, new_name: NewName
) -> None:
    topic, missing = a_topic(connection, new_name(), partitions=2), new_name()
    torn = bytearray(batch([b"damaged"]))
    torn[-2] ^= 0xFF
    answers = produce(
        connection,
        {
            (topic, 0): batch([b"good"]),
            (topic, 1): bytes(torn),
            (topic, 9): batch([b"no such partition"]),
            (missing, 0): batch([b"no such topic"]),
        },
    )
    assert (answers[topic, 0].error_code, answers[topic, 0].base_offset) == (0, 0)
    assert (answers[topic, 1].error_code, answers[topic, 1].base_offset) == (CORRUPT_MESSAGE, -1)
    assert answers[topic, 9].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert answers[missing, 0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert values_from(connection, topic) == [b"good"]


def test_unknown_acks_are_refused(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    answer = produce(connection, {(topic, 0): batch([b"x"])}, acks=2)
    assert answer[topic, 0].error_code == INVALID_REQUIRED_ACKS
    assert values_from(connection, topic) == []


def test_fetching_outside_the_log_is_out_of_range(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    produce(connection, {(topic, 0): batch([b"x"])})
    assert fetch_one(connection, FetchPlace(topic, 0, 1)).error_code == 0
    for offset in (2, 1 << 40, -5):
        fetched = fetch_one(connection, FetchPlace(topic, 0, offset))
        assert (fetched.error_code, fetched.records) == (OFFSET_OUT_OF_RANGE, b"")
    assert fetch_one(connection, FetchPlace(topic, 7, 0)).error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_fetches_check_the_leader_epoch(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    produce(connection, {(topic, 0): batch([b"x", b"y"])})
    error_code, epoch, end_offset = epoch_end(connection, (topic, 0), 0)
    assert (error_code, epoch, end_offset) == (0, 0, 2)
    assert fetch_one(connection, FetchPlace(topic, 0, 0, leader_epoch=0)).error_code == 0
    ahead = fetch_one(connection, FetchPlace(topic, 0, 0, leader_epoch=5))
    assert ahead.error_code == UNKNOWN_LEADER_EPOCH


def test_partition_and_total_byte_limits_of_a_fetch_hold(
    connection: Connection, new_name: NewName
) -> None:
    topic, one = a_topic(connection, new_name(), partitions=4), batch([b"v" * 10_000])
    for partition in range(4):
        for _ in range(20):
            produce(connection, {(topic, partition): one})
    places = tuple(FetchPlace(topic, at, 0, bytes_max=50_000) for at in range(4))
    answer = fetch(connection, FetchQuestion(places))
    sizes = {place: len(part.records) for place, part in answer.partitions.items()}
    assert all(30_000 < size <= 50_000 for size in sizes.values()), sizes
    answer = fetch(connection, FetchQuestion(places, bytes_max=80_000))
    total = sum(len(part.records) for part in answer.partitions.values())
    assert 50_000 < total <= 80_000
    tiny = tuple(FetchPlace(topic, at, 0, bytes_max=1) for at in range(4))
    answer = fetch(connection, FetchQuestion(tiny, bytes_max=1))
    served = [part for part in answer.partitions.values() if read_records(part.records)]
    assert len(served) == 1, "the first partition answers one whole batch whatever the limits"


def test_a_long_poll_is_woken_by_a_produce(
    connection: Connection, bootstrap: str, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    question = FetchQuestion((FetchPlace(topic, 0, 0),), wait_ms_max=60_000, bytes_min=1)
    with Connection(bootstrap) as reading:
        reading.send(FETCH, 11, fetch_body(question, 11))
        produce(connection, {(topic, 0): batch([b"wake"])})
        _, reader = reading.receive()  # the socket's own time-out is far below the wait
    records = read_fetched(reader, 11).partitions[topic, 0].records
    assert [record.value for record in read_records(records)] == [b"wake"]


def test_a_long_poll_waits_for_its_minimum_of_bytes(
    connection: Connection, bootstrap: str, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    place = FetchPlace(topic, 0, 0)
    question = FetchQuestion((place,), wait_ms_max=60_000, bytes_min=2_000)
    with Connection(bootstrap) as reading:
        reading.send(FETCH, 11, fetch_body(question, 11))
        for _ in range(3):
            produce(connection, {(topic, 0): batch([b"v" * 800])})
        _, reader = reading.receive()
    assert len(read_records(read_fetched(reader, 11).partitions[topic, 0].records)) == 3


def test_a_long_poll_ends_at_its_deadline_with_nothing(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    place = FetchPlace(topic, 0, 0)
    answer = fetch(connection, FetchQuestion((place,), wait_ms_max=50))
    assert answer.partitions[topic, 0].records == b""


def test_an_idempotent_batch_sent_again_answers_its_first_offset(
    connection: Connection, new_name: NewName
) -> None:
    topic = a_topic(connection, new_name())
    producer_id, epoch = init_producer_id(connection)

    def send(sequence: int) -> tuple[int, int]:
        data = batch([b"a", b"b"], producer=Sequenced(producer_id, epoch, sequence))
        answer = produce(connection, {(topic, 0): data})[topic, 0]
        return answer.error_code, answer.base_offset

    assert [send(sequence) for sequence in (0, 2, 4)] == [(0, 0), (0, 2), (0, 4)]
    assert send(2) == (0, 2)
    assert send(4) == (0, 4)
    assert send(8)[0] == OUT_OF_ORDER_SEQUENCE
    assert send(6) == (0, 6)
    assert len(values_from(connection, topic)) == 8


def test_an_old_producer_epoch_is_fenced(connection: Connection, new_name: NewName) -> None:
    topic = a_topic(connection, new_name())
    producer_id, _ = init_producer_id(connection)

    def send(epoch: int, sequence: int) -> int:
        data = batch([b"a"], producer=Sequenced(producer_id, epoch, sequence))
        return produce(connection, {(topic, 0): data})[topic, 0].error_code

    assert send(3, 0) == 0
    assert send(2, 1) == INVALID_PRODUCER_EPOCH
    assert send(4, 1) == OUT_OF_ORDER_SEQUENCE, "a new epoch starts at sequence 0"
    assert send(4, 0) == 0


def test_producer_ids_are_never_given_twice(connection: Connection) -> None:
    given = [init_producer_id(connection)[0] for _ in range(50)]
    assert len(set(given)) == 50


@pytest.mark.parametrize("beyond", [1, 94, 32000])
def test_an_unknown_api_versions_version_answers_version_zero_with_error_35(
    bootstrap: str, beyond: int
) -> None:
    with Connection(bootstrap) as connection:
        version = supported_versions(connection)[API_VERSIONS][1] + beyond
        connection.send(API_VERSIONS, version, b"\x01\x01\0", flexible=True)
        _, reader = connection.receive()
        assert reader.int16() == UNSUPPORTED_VERSION
        ranges = {}
        for _ in range(reader.count()):
            key = reader.int16()
            ranges[key] = reader.int16(), reader.int16()
        reader.end()
        assert ranges[API_VERSIONS][0] == 0
        assert supported_versions(connection)[PRODUCE][1] >= 9, "and the connection still works"


@pytest.mark.parametrize("version", [3, 4])
def test_flexible_api_versions_answers_have_the_old_header(bootstrap: str, version: int) -> None:
    with Connection(bootstrap) as connection:
        name, software_version = b"\x04raw", b"\x021"
        sent = connection.send(
            API_VERSIONS, version, name + software_version + b"\0", flexible=True
        )
        answered, reader = connection.receive()
        assert answered == sent
        assert reader.int16() == 0, "the error code stands right after the correlation id"


def test_a_request_split_into_single_bytes_is_answered(bootstrap: str) -> None:
    with Connection(bootstrap) as connection:
        for byte in frame(request_header(API_VERSIONS, 0, 77)):
            connection.send_bytes(bytes([byte]))
        answered, reader = connection.receive()
        assert (answered, reader.int16()) == (77, 0)


def test_a_null_client_id_is_accepted(bootstrap: str) -> None:
    header = request_header(API_VERSIONS, 0, 5)[:8] + b"\xff\xff"
    with Connection(bootstrap) as connection:
        connection.send_bytes(frame(header))
        answered, reader = connection.receive()
        assert (answered, reader.int16()) == (5, 0)


def test_unknown_tagged_fields_are_skipped(bootstrap: str) -> None:
    tags = b"\x02" + b"\x63\x03abc" + b"\x64\x00"
    body = b"\x04raw\x021" + tags
    header = request_header(API_VERSIONS, 3, 6) + b"\x01\x2a\x02hi"
    with Connection(bootstrap) as connection:
        connection.send_bytes(frame(header + body))
        answered, reader = connection.receive()
        assert (answered, reader.int16()) == (6, 0)
        assert isinstance(reader, Reader)


def test_every_record_without_a_key_is_named_by_its_index(
    bootstrap: str, new_name: NewName
) -> None:
    topic = new_name()
    builder = BatchBuilder()
    for key in (b"k", None, b"k", None, None):
        builder.append(now_ms(), key, b"value")
    with TypedConnection(bootstrap) as typed:
        compacted = CreatableTopicConfig("cleanup.policy", "compact")
        created = CreatableTopic(topic, 1, 1, configs=[compacted])
        typed.call(CreateTopicsRequest(topics=[created], timeout_ms=10_000), 5)

        def answered() -> PartitionProduceResponse | None:
            data = PartitionProduceData(index=0, records=memoryview(builder.build()))
            wanted = TopicProduceData(topic, partition_data=[data])
            answer = typed.call(ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[wanted]), 9)
            assert isinstance(answer, ProduceResponse)
            (found,) = answer.responses[0].partition_responses
            return None if found.error_code == UNKNOWN_TOPIC_OR_PARTITION else found

        refused = eventually(answered, "the topic")
    assert refused.error_code == INVALID_RECORD
    assert [each.batch_index for each in refused.record_errors] == [1, 3, 4]
