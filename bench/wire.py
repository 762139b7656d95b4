"""The few Kafka requests the benchmarks send themselves, encoded by hand over blocking sockets.

Independent of Ottla's own protocol package, so that a fault there cannot hide here. Only versions
without tagged fields are used, which old and new brokers both answer: Produce 7, Fetch 4,
ListOffsets 1, Metadata 1, ApiVersions 0, CreateTopics 2, DeleteTopics 1,
ElectLeaders 1; of groups OffsetCommit 6,
FindCoordinator 1, JoinGroup 5, Heartbeat 3, LeaveGroup 1, SyncGroup 3.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

import crc32c

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP = 8, 10, 11
HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 12, 13, 14
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, ELECT_LEADERS = 18, 19, 20, 43
VERSIONS = {
    PRODUCE: 7,
    FETCH: 4,
    LIST_OFFSETS: 1,
    METADATA: 1,
    OFFSET_COMMIT: 6,
    FIND_COORDINATOR: 1,
    JOIN_GROUP: 5,
    HEARTBEAT: 3,
    LEAVE_GROUP: 1,
    SYNC_GROUP: 3,
    API_VERSIONS: 0,
    CREATE_TOPICS: 2,
    DELETE_TOPICS: 1,
    ELECT_LEADERS: 1,
}
CLIENT_ID = "ottla-bench"
ANSWER_SECONDS_MAX = 60.0
LEADERS_SECONDS_MAX = 120.0
DELETE_DELAY_MS = 1000
"""How long brokers keep what was deleted: a minute otherwise, longer than most measurements."""
UNKNOWN_TOPIC = 3


class BrokerAnswer(Exception):
    """The broker answered an error, or something that cannot be an answer."""


def string(text: str | None) -> bytes:
    """A nullable string with its two-byte length."""
    if text is None:
        return struct.pack(">h", -1)
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def frame(api: int, correlation: int, body: bytes) -> bytes:
    """One whole request with its size in front."""
    head = struct.pack(">hhi", api, VERSIONS[api], correlation) + string(CLIENT_ID)
    return struct.pack(">i", len(head) + len(body)) + head + body


class Reader:
    """Takes one value after the other off a response body."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(">" + layout, self._data, self._position)
        self._position += struct.calcsize(">" + layout)
        return values

    def number(self, layout: str) -> int:
        return int(self.take(layout)[0])

    def string(self) -> str | None:
        size = self.number("h")
        if size < 0:
            return None
        self._position += size
        return self._data[self._position - size : self._position].decode()

    def skip(self, size: int) -> None:
        self._position += max(0, size)


class Connection:
    """One blocking connection; `request` is a round trip, the socket is there for pipelining."""

    def __init__(self, bootstrap: str, *, timeout_s: float = ANSWER_SECONDS_MAX) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, api: int, body: bytes) -> None:
        self._correlation += 1
        self.socket.sendall(frame(api, self._correlation, body))

    def receive(self) -> Reader:
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        answer = self.receive_exactly(size)
        (correlation,) = struct.unpack_from(">i", answer)
        if correlation != self._correlation:
            raise BrokerAnswer(f"correlation id {correlation} instead of {self._correlation}")
        return Reader(answer[4:])

    def request(self, api: int, body: bytes) -> Reader:
        self.send(api, body)
        return self.receive()

    def receive_exactly(self, size: int) -> bytes:
        buffer = bytearray(size)
        self.receive_into(memoryview(buffer))
        return bytes(buffer)

    def receive_into(self, view: memoryview) -> None:
        """Fill the whole view."""
        received = 0
        while received < len(view):
            count = self.socket.recv_into(view[received:])
            if not count:
                raise BrokerAnswer("the broker closed the connection")
            received += count


@dataclass(frozen=True, slots=True)
class Batch:
    """An encoded record batch and the number of records in it."""

    data: bytes
    records: int


def varint(number: int) -> bytes:
    """A zigzag variable-length integer."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest & ~0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def record_batch(value: bytes, records: int) -> Batch:
    """A version 2 batch of equal records without key, headers or compression."""
    now_ms = time.time_ns() // 1_000_000
    parts = []
    for delta in range(records):
        body = b"\x00\x00" + varint(delta) + b"\x01" + varint(len(value)) + value + b"\x00"
        parts.append(varint(len(body)) + body)
    head = struct.pack(">hiqqqhii", 0, records - 1, now_ms, now_ms, -1, -1, -1, records)
    summed = head + b"".join(parts)
    prefix = struct.pack(">qiibI", 0, len(summed) + 9, -1, 2, crc32c.crc32c(summed))
    return Batch(prefix + summed, records)


def batch_of_size(size: int, value_size: int) -> Batch:
    """A batch of about `size` bytes, never more unless one record is larger."""
    one = len(record_batch(b"x" * value_size, 1).data)
    each = len(record_batch(b"x" * value_size, 2).data) - one
    return record_batch(b"x" * value_size, max(1, (size - one) // (each + 2) + 1))


def produce_body(topic: str, partition: int, batch: Batch, *, acks: int = -1) -> bytes:
    """One batch for one partition."""
    return (
        string(None)
        + struct.pack(">hii", acks, 30_000, 1)
        + string(topic)
        + struct.pack(">iii", 1, partition, len(batch.data))
        + batch.data
    )


def produce_answer_size(topic: str) -> int:
    """The size of an answer to `produce_body`, its own size field included."""
    return 4 + 4 + 4 + len(string(topic)) + 4 + struct.calcsize(">ihqqq") + 4


def produced_offset(answer: Reader) -> int:
    """The base offset an answer to `produce_body` gives."""
    answer.take("i")
    answer.string()
    _, _, error, offset = answer.take("iihq")
    if error:
        raise BrokerAnswer(f"Produce answered error {error}")
    return int(offset)


@dataclass(frozen=True, slots=True)
class FetchWish:
    """What one fetch of one partition asks for."""

    topic: str
    partition: int
    offset: int
    bytes_max: int
    wait_ms: int = 500
    bytes_min: int = 1


def fetch_body(wish: FetchWish) -> bytes:
    """A fetch of one partition, uncommitted records included."""
    return (
        struct.pack(">iiiib", -1, wish.wait_ms, wish.bytes_min, 1 << 30, 0)
        + struct.pack(">i", 1)
        + string(wish.topic)
        + struct.pack(">iiqi", 1, wish.partition, wish.offset, wish.bytes_max)
    )


def fetched_bytes(answer: Reader) -> int:
    """The size of the records in an answer to `fetch_body`."""
    answer.take("ii")
    answer.string()
    _, _, error, _, _ = answer.take("iihqq")
    if error:
        raise BrokerAnswer(f"Fetch answered error {error}")
    answer.skip(answer.number("i") * 16)
    return answer.number("i")


def end_offset(connection: Connection, topic: str, partition: int) -> int:
    """The offset the next record of the partition will get."""
    body = struct.pack(">ii", -1, 1) + string(topic) + struct.pack(">iiq", 1, partition, -1)
    answer = connection.request(LIST_OFFSETS, body)
    answer.take("i")
    answer.string()
    _, _, error, _, offset = answer.take("iihqq")
    if error:
        raise BrokerAnswer(f"ListOffsets answered error {error}")
    return int(offset)


def broker_count(connection: Connection) -> int:
    """How many brokers Metadata names; a broker that is still starting may name none."""
    return connection.request(METADATA, struct.pack(">i", 0)).number("i")


def offered_apis(connection: Connection) -> set[int]:
    """The keys of the requests the broker says it understands."""
    answer = connection.request(API_VERSIONS, b"")
    error = answer.number("h")
    if error:
        raise BrokerAnswer(f"ApiVersions answered error {error}")
    return {int(answer.take("hhh")[0]) for _ in range(answer.number("i"))}


def is_servable(connection: Connection, topic: str, partitions: int) -> bool:
    """Whether every partition of the topic answers a fetch at offset 0 without an error."""
    body = struct.pack(">iiiibi", -1, 0, 0, 1 << 20, 0, 1) + string(topic)
    body += struct.pack(">i", partitions)
    body += b"".join(struct.pack(">iqi", partition, 0, 1) for partition in range(partitions))
    answer = connection.request(FETCH, body)
    answer.take("ii")
    answer.string()
    for _ in range(answer.number("i")):
        _, error, _, _ = answer.take("ihqq")
        answer.skip(answer.number("i") * 16)
        answer.skip(answer.number("i"))
        if error:
            return False
    return True


def create_topic(connection: Connection, topic: str, partitions: int) -> None:
    """Create the topic and wait until every partition can be used."""
    body = struct.pack(">i", 1) + string(topic) + struct.pack(">ihi", partitions, 1, 0)
    settings = {"file.delete.delay.ms": str(DELETE_DELAY_MS)}
    body += struct.pack(">i", len(settings))
    body += b"".join(string(name) + string(value) for name, value in settings.items())
    answer = connection.request(CREATE_TOPICS, body + struct.pack(">ib", 60_000, 0))
    answer.take("ii")
    answer.string()
    error = answer.number("h")
    if error:
        raise BrokerAnswer(f"CreateTopics {topic} answered error {error}: {answer.string()}")
    wait_servable(connection, topic, partitions)


def wait_servable(connection: Connection, topic: str, partitions: int) -> None:
    """Wait until the topic can be used: a leader may be named before it serves."""
    deadline = time.monotonic() + LEADERS_SECONDS_MAX
    while not is_servable(connection, topic, partitions):
        if time.monotonic() > deadline:
            raise BrokerAnswer(f"{topic} cannot be used after {LEADERS_SECONDS_MAX:.0f} s")
        time.sleep(0.005)


def delete_topic(connection: Connection, topic: str) -> None:
    """Delete the topic; that it is not there is no error."""
    body = struct.pack(">i", 1) + string(topic) + struct.pack(">i", 60_000)
    answer = connection.request(DELETE_TOPICS, body)
    answer.take("ii")
    answer.string()
    error = answer.number("h")
    if error not in (0, UNKNOWN_TOPIC):
        raise BrokerAnswer(f"DeleteTopics {topic} answered error {error}")
