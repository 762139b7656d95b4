"""The requests that raw tests send, and their answers, in every non-flexible version.

Versions covered: Produce 0-8, Fetch 0-11, ListOffsets 0-5, Metadata 0-8, CreateTopics 0-4,
InitProducerId 0-1, OffsetForLeaderEpoch 0-3, ApiVersions 0.
"""

from dataclasses import dataclass, field

from support.eventually import eventually
from support.wire import (
    Connection,
    Reader,
    array,
    int8,
    int16,
    int32,
    int64,
    nullable_bytes,
    string,
)

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 18, 19, 22, 23

NO_SESSION_EPOCH, NEW_SESSION_EPOCH = -1, 0
LATEST, EARLIEST = -1, -2
COORDINATOR_LOAD_IN_PROGRESS = 14

Place = tuple[str, int]  # a topic and a partition


@dataclass(frozen=True, slots=True)
class Produced:
    """A partition's part of a Produce answer."""

    error_code: int
    base_offset: int
    append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class FetchPlace:
    """What a Fetch asks of one partition."""

    topic: str
    partition: int
    offset: int
    bytes_max: int = 1 << 20
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class FetchQuestion:
    """A whole Fetch request."""

    places: tuple[FetchPlace, ...]
    wait_ms_max: int = 0
    bytes_min: int = 1
    bytes_max: int = 50 << 20
    session_id: int = 0
    session_epoch: int = NO_SESSION_EPOCH
    forgotten: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """A partition's part of a Fetch answer."""

    error_code: int
    high_watermark: int
    records: bytes
    last_stable_offset: int = -1
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """A whole Fetch answer."""

    error_code: int
    session_id: int
    partitions: dict[Place, Fetched]


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """A partition's part of a ListOffsets answer; version 0 answers several offsets."""

    error_code: int
    timestamp_ms: int
    offset: int
    offsets: tuple[int, ...] = ()


@dataclass(slots=True)
class MetadataAnswer:
    """Brokers by id, and of each topic its error and its partition leaders."""

    brokers: dict[int, str] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: dict[str, tuple[int, dict[int, int]]] = field(default_factory=dict)


def _by_topic(places: dict[Place, bytes]) -> bytes:
    topics: dict[str, list[bytes]] = {}
    for (topic, _), encoded in places.items():
        topics.setdefault(topic, []).append(encoded)
    return array([string(topic) + array(partitions) for topic, partitions in topics.items()])


def produce_body(
    records: dict[Place, bytes | None], *, version: int, acks: int = -1, timeout_ms: int = 10_000
) -> bytes:
    """A Produce request body."""
    transactional_id = string(None) if version >= 3 else b""
    data = {place: int32(place[1]) + nullable_bytes(batch) for place, batch in records.items()}
    return transactional_id + int16(acks) + int32(timeout_ms) + _by_topic(data)


def read_produced(reader: Reader, version: int) -> dict[Place, Produced]:
    """Read a Produce response body."""
    answers: dict[Place, Produced] = {}
    for _ in range(reader.count()):
        topic = str(reader.string())
        for _ in range(reader.count()):
            place = topic, reader.int32()
            error_code, base_offset = reader.int16(), reader.int64()
            append_time = reader.int64() if version >= 2 else -1
            log_start = reader.int64() if version >= 5 else -1
            message = None
            if version >= 8:
                for _ in range(reader.count()):
                    reader.int32(), reader.string()
                message = reader.string()
            answers[place] = Produced(error_code, base_offset, append_time, log_start, message)
    if version >= 1:
        reader.int32()
    reader.end()
    return answers


def produce(
    connection: Connection,
    records: dict[Place, bytes | None],
    *,
    version: int = 8,
    acks: int = -1,
) -> dict[Place, Produced]:
    """Produce and wait for the answer."""
    body = produce_body(records, version=version, acks=acks)
    return read_produced(connection.call(PRODUCE, version, body), version)


def fetch_body(question: FetchQuestion, version: int) -> bytes:
    """A Fetch request body."""
    parts = {}
    for place in question.places:
        epoch = int32(place.leader_epoch) if version >= 9 else b""
        log_start = int64(-1) if version >= 5 else b""
        encoded = int32(place.partition) + epoch + int64(place.offset)
        parts[place.topic, place.partition] = encoded + log_start + int32(place.bytes_max)
    body = int32(-1) + int32(question.wait_ms_max) + int32(question.bytes_min)
    body += int32(question.bytes_max) if version >= 3 else b""
    body += int8(0) if version >= 4 else b""
    if version >= 7:
        body += int32(question.session_id) + int32(question.session_epoch)
    body += _by_topic(parts)
    if version >= 7:
        body += _by_topic({place: int32(place[1]) for place in question.forgotten})
    return body + (string("") if version >= 11 else b"")


def read_fetched(reader: Reader, version: int) -> FetchAnswer:
    """Read a Fetch response body."""
    if version >= 1:
        reader.int32()
    error_code = reader.int16() if version >= 7 else 0
    session_id = reader.int32() if version >= 7 else 0
    partitions: dict[Place, Fetched] = {}
    for _ in range(reader.count()):
        topic = str(reader.string())
        for _ in range(reader.count()):
            place = topic, reader.int32()
            partitions[place] = _read_fetched_partition(reader, version)
    reader.end()
    return FetchAnswer(error_code, session_id, partitions)


def _read_fetched_partition(reader: Reader, version: int) -> Fetched:
    error_code, high_watermark = reader.int16(), reader.int64()
    last_stable = reader.int64() if version >= 4 else -1
    log_start = reader.int64() if version >= 5 else -1
    if version >= 4:
        for _ in range(reader.count()):
            reader.int64(), reader.int64()
    if version >= 11:
        reader.int32()
    records = reader.bytes() or b""
    return Fetched(error_code, high_watermark, records, last_stable, log_start)


def fetch(connection: Connection, question: FetchQuestion, *, version: int = 11) -> FetchAnswer:
    """Fetch and wait for the answer."""
    body = fetch_body(question, version)
    return read_fetched(connection.call(FETCH, version, body), version)


def fetch_one(connection: Connection, place: FetchPlace, *, version: int = 11) -> Fetched:
    """Fetch one partition without a session and without waiting."""
    answer = fetch(connection, FetchQuestion((place,)), version=version)
    assert answer.error_code == 0
    return answer.partitions[place.topic, place.partition]


def list_offset(
    connection: Connection, place: Place, timestamp_ms: int, *, version: int = 5
) -> FoundOffset:
    """Ask one partition for the offset of a timestamp, or of EARLIEST or LATEST."""
    isolation = int8(0) if version >= 2 else b""
    epoch = int32(-1) if version >= 4 else b""
    count_max = int32(10) if version == 0 else b""
    partition = int32(place[1]) + epoch + int64(timestamp_ms) + count_max
    body = int32(-1) + isolation + _by_topic({place: partition})
    reader = connection.call(LIST_OFFSETS, version, body)
    if version >= 2:
        reader.int32()
    assert (reader.count(), reader.string(), reader.count()) == (1, place[0], 1)
    assert reader.int32() == place[1]
    error_code = reader.int16()
    if version == 0:
        offsets = tuple(reader.int64() for _ in range(reader.count()))
        reader.end()
        return FoundOffset(error_code, -1, offsets[0] if offsets else -1, offsets)
    timestamp, offset = reader.int64(), reader.int64()
    if version >= 4:
        reader.int32()
    reader.end()
    return FoundOffset(error_code, timestamp, offset)


def metadata(
    connection: Connection,
    topics: list[str] | None,
    *,
    version: int = 8,
    auto_create: bool = False,
) -> MetadataAnswer:
    """Ask for metadata; None means all topics (sent as an empty list by version 0)."""
    names = [string(topic) for topic in topics] if topics is not None else None
    body = array([] if version == 0 and names is None else names)
    body += int8(auto_create) if version >= 4 else b""
    body += int8(0) + int8(0) if version >= 8 else b""
    return _read_metadata(connection.call(METADATA, version, body), version)


def _read_metadata(reader: Reader, version: int) -> MetadataAnswer:
    answer = MetadataAnswer()
    if version >= 3:
        reader.int32()
    for _ in range(reader.count()):
        node_id, host, port = reader.int32(), reader.string(), reader.int32()
        answer.brokers[node_id] = f"{host}:{port}"
        if version >= 1:
            reader.string()
    answer.cluster_id = reader.string() if version >= 2 else None
    answer.controller_id = reader.int32() if version >= 1 else -1
    for _ in range(reader.count()):
        error_code, name = reader.int16(), str(reader.string())
        if version >= 1:
            reader.int8()
        answer.topics[name] = error_code, _read_leaders(reader, version)
        if version >= 8:
            reader.int32()
    if version >= 8:
        reader.int32()
    reader.end()
    return answer


def _read_leaders(reader: Reader, version: int) -> dict[int, int]:
    leaders: dict[int, int] = {}
    for _ in range(reader.count()):
        reader.int16()
        index = reader.int32()
        leaders[index] = reader.int32()
        if version >= 7:
            reader.int32()
        for _ in range(3 if version >= 5 else 2):
            for _ in range(reader.count()):
                reader.int32()
    return leaders


@dataclass(frozen=True, slots=True)
class TopicWish:
    """A topic to be created."""

    name: str
    partitions: int = 1
    configs: tuple[tuple[str, str | None], ...] = ()


def create_topics(connection: Connection, *wishes: TopicWish, version: int = 4) -> dict[str, int]:
    """Create topics and return the error code of each."""
    topics = []
    for wish in wishes:
        configs = [string(name) + string(value) for name, value in wish.configs]
        head = string(wish.name) + int32(wish.partitions) + int16(1)
        topics.append(head + array([]) + array(configs))
    body = array(topics) + int32(30_000) + (int8(0) if version >= 1 else b"")
    reader = connection.call(CREATE_TOPICS, version, body)
    if version >= 2:
        reader.int32()
    errors: dict[str, int] = {}
    for _ in range(reader.count()):
        name = str(reader.string())
        errors[name] = reader.int16()
        if version >= 1:
            reader.string()
    reader.end()
    return errors


def a_topic(connection: Connection, name: str, *, partitions: int = 1, **configs: str) -> str:
    """Create a topic (config names with underscores for dots) and wait until all of it is led."""
    named = tuple((key.replace("_", "."), value) for key, value in configs.items())
    errors = create_topics(connection, TopicWish(name, partitions, named))
    assert errors == {name: 0}, errors
    for partition in range(partitions):
        await_leader(connection, (name, partition))
    return name


def await_leader(connection: Connection, place: Place) -> None:
    """Wait until the partition answers; a broker may learn of its own topics a little later."""
    eventually(
        lambda: list_offset(connection, place, LATEST).error_code == 0, f"a leader of {place}"
    )


def init_producer_id(connection: Connection) -> tuple[int, int]:
    """A fresh producer id and its epoch; asks again while the coordinator loads."""
    error_code = COORDINATOR_LOAD_IN_PROGRESS
    while error_code == COORDINATOR_LOAD_IN_PROGRESS:
        reader = connection.call(INIT_PRODUCER_ID, 1, string(None) + int32(60_000))
        reader.int32()
        error_code, producer_id, epoch = reader.int16(), reader.int64(), reader.int16()
        reader.end()
    assert error_code == 0, error_code
    return producer_id, epoch


def epoch_end(connection: Connection, place: Place, epoch: int) -> tuple[int, int, int]:
    """OffsetForLeaderEpoch: (error code, epoch, end offset)."""
    partition = int32(place[1]) + int32(-1) + int32(epoch)
    body = int32(-2) + _by_topic({place: partition})
    reader = connection.call(OFFSET_FOR_LEADER_EPOCH, 3, body)
    reader.int32()
    assert (reader.count(), reader.string(), reader.count()) == (1, place[0], 1)
    error_code, partition_index = reader.int16(), reader.int32()
    assert partition_index == place[1]
    answer = error_code, reader.int32(), reader.int64()
    reader.end()
    return answer


def supported_versions(connection: Connection) -> dict[int, tuple[int, int]]:
    """What ApiVersions says: lowest and highest version of every API."""
    reader = connection.call(API_VERSIONS, 0, b"")
    assert reader.int16() == 0
    ranges = {}
    for _ in range(reader.count()):
        key = reader.int16()
        ranges[key] = reader.int16(), reader.int16()
    reader.end()
    return ranges
