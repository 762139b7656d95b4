"""Damage to what was flushed: it is said at start, and never read over in silence.

One topic, one damage per partition, so that a single restart tries all of them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.errors import ErrorCode
from support.batches import batch, read_records
from support.broker_process import BrokerProcess
from support.requests import EARLIEST, FetchPlace, a_topic, fetch_one, list_offset, produce
from support.wire import Connection

OwnBroker = Callable[..., BrokerProcess]
Damage = Callable[[Path], None]

BATCHES = 90
VALUE = b"v" * 30_000
RECORD_COUNT_AT, LAST_DELTA_AT, ATTRIBUTES_AT, LENGTH_AT = 57, 23, 21, 8


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(at: int, data: bytes) -> Damage:
    """In the header of the segment's second batch."""

    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        second = 12 + int.from_bytes(content[8:12], "big")
        content[second + at : second + at + len(data)] = data
        path.write_bytes(content)

    return damage


SIZES: dict[str, Damage] = {"cut": half, "emptied": empty, "deleted": Path.unlink}
HEADERS: dict[str, Damage] = {
    "count": overwrite(RECORD_COUNT_AT, b"\x7f\xff\xff\xff"),
    "negative count": overwrite(RECORD_COUNT_AT, b"\xff\xff\xff\xff"),
    "last offset delta": overwrite(LAST_DELTA_AT, b"\x7f\xff\xff\xff"),
    "codec": overwrite(ATTRIBUTES_AT, b"\0\7"),
    "length": overwrite(LENGTH_AT, b"\0\0\0\x10"),
    "magic": overwrite(16, b"\x63"),
    "base offset": overwrite(0, b"\x7f" * 8),
}
DAMAGES = {**SIZES, **HEADERS}


def flushed(broker: BrokerProcess, *, partitions: int) -> str:
    """A topic of several segments in each partition, all of it flushed by a clean stop."""
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "holes", partitions=partitions, segment_bytes="1048576")
        for _ in range(BATCHES):
            places = [(topic, at) for at in range(partitions)]
            assert produce(connection, {place: batch([VALUE]) for place in places})
    assert broker.stop() == 0
    return topic


def middle_segment(broker: BrokerProcess, topic: str, partition: int) -> Path:
    (directory,) = broker.data.rglob(f"{topic}-{partition}")
    found = sorted(directory.glob("*.log"))
    assert len(found) > 2
    return found[1]


def read_until_it_fails(connection: Connection, place: tuple[str, int]) -> tuple[int, int]:
    """The next offset after all that could be read, and the error there."""
    offset = 0
    while offset < BATCHES:
        fetched = fetch_one(connection, FetchPlace(*place, offset=offset))
        if fetched.error_code:
            return offset, fetched.error_code
        records = read_records(fetched.records)
        assert [record.offset for record in records][:1] == [offset], "read over a hole"
        offset = records[-1].offset + 1
    return offset, 0


@pytest.mark.parametrize("stop", ["clean", "kill -9"])
def test_a_hole_in_flushed_data_is_said_and_never_read_over(
    own_broker: OwnBroker, stop: str
) -> None:
    broker = own_broker()
    topic = flushed(broker, partitions=len(DAMAGES))
    if stop == "kill -9":
        broker.start()
        broker.kill()
    first_lost = []
    for partition, (name, damage) in enumerate(DAMAGES.items()):
        path = middle_segment(broker, topic, partition)
        damage(path)
        kept = read_records(path.read_bytes()) if name == "cut" else []
        first_lost.append(int(path.stem) + (len(kept) if name in SIZES else 1))
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        for partition, name in enumerate(DAMAGES):
            found = read_until_it_fails(connection, (topic, partition))
            assert found == (first_lost[partition], ErrorCode.CORRUPT_MESSAGE), name
            behind = fetch_one(connection, FetchPlace(topic, partition, offset=BATCHES - 1))
            assert behind.error_code == 0, name
    for partition, name in enumerate(DAMAGES):
        said = [line for line in broker.errors().splitlines() if f"{topic}-{partition}:" in line]
        assert len(said) == (name in SIZES), (name, said)


@pytest.mark.parametrize("stop", ["clean", "kill -9"])
def test_a_start_offset_past_the_end_hides_nothing(own_broker: OwnBroker, stop: str) -> None:
    broker = own_broker()
    topic = flushed(broker, partitions=1)
    if stop == "kill -9":
        broker.start()
        broker.kill()
    checkpoint = broker.data / "log-start-offset-checkpoint"
    checkpoint.write_text(f"0\n1\n{topic} 0 100000\n")
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        assert list_offset(connection, (topic, 0), EARLIEST).offset == 0
        assert read_until_it_fails(connection, (topic, 0)) == (BATCHES, 0)
    assert "start offset 100000 is past the end" in broker.errors()
