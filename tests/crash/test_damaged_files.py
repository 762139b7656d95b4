"""Torn tails and lost or damaged auxiliary files: what is readable stays readable.

One topic, one damage per partition, so that a single restart tries all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from support.batches import Sequenced, batch
from support.broker_process import BrokerProcess
from support.requests import (
    FetchPlace,
    a_topic,
    epoch_end,
    fetch_one,
    init_producer_id,
    list_offset,
    produce,
)
from support.wire import Connection
from support.writer import whole_log

OwnBroker = Callable[..., BrokerProcess]

BATCHES, RECORDS_PER_BATCH = 6, 3
BASE_MS = 1_700_000_000_000


def partition_directory(broker: BrokerProcess, topic: str, partition: int) -> Path:
    (found,) = broker.data.rglob(f"{topic}-{partition}")
    return found


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


Cut = Callable[[bytes, int], bytes]  # the file and where its last batch starts, to a damaged file

CUTS: dict[str, Cut] = {
    "one byte of the last batch left": lambda data, last: data[: last + 1],
    "cut inside the length": lambda data, last: data[: last + 10],
    "cut after the length": lambda data, last: data[: last + 12],
    "cut inside the header": lambda data, last: data[: last + 40],
    "cut after the header": lambda data, last: data[: last + 61],
    "cut in the middle": lambda data, last: data[: (last + len(data)) // 2],
    "last byte missing": lambda data, last: data[:-1],
    "last batch zeroed": lambda data, last: data[:last] + bytes(len(data) - last),
    "last byte flipped": lambda data, last: data[:-1] + bytes([data[-1] ^ 1]),
}
APPENDED: dict[str, Cut] = {
    "zeros after the end": lambda data, last: data + bytes(5000),
    "garbage after the end": lambda data, last: data + Random(7).randbytes(3001),
    "a single byte after the end": lambda data, last: data + b"\0",
    "half a batch after the end": lambda data, last: data + data[last : last + 50],
    "a batch of an old offset after the end": lambda data, last: data + data[last:],
}


def test_a_torn_tail_is_cut_at_the_last_whole_batch(own_broker: OwnBroker) -> None:
    broker, damages = own_broker(), {**CUTS, **APPENDED}
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "torn", partitions=len(damages))
        for partition in range(len(damages)):
            for number in range(BATCHES):
                values = [b"%d/%d" % (number, at) for at in range(RECORDS_PER_BATCH)]
                produce(connection, {(topic, partition): batch(list(values))})
    broker.kill()
    last_batch_bytes = len(batch([b"5/0", b"5/1", b"5/2"]))
    for partition, damage in enumerate(damages.values()):
        (path,) = segments(partition_directory(broker, topic, partition))
        data = path.read_bytes()
        path.write_bytes(damage(data, len(data) - last_batch_bytes))
    broker.start()
    for partition, name in enumerate(damages):
        kept = (BATCHES - 1 if name in CUTS else BATCHES) * RECORDS_PER_BATCH
        log = whole_log(broker.bootstrap_servers, (topic, partition))
        assert len(log) == kept, name
        with Connection(broker.bootstrap_servers) as connection:
            answer = produce(connection, {(topic, partition): batch([b"after"])})[topic, partition]
        assert (answer.error_code, answer.base_offset) == (0, kept), name
        again = whole_log(broker.bootstrap_servers, (topic, partition))
        assert [one.value for one in again[:kept]] == [one.value for one in log], name
        assert again[-1].value == b"after", name


@dataclass(frozen=True, slots=True)
class Damage:
    """What to do to which files of a partition's directory."""

    name: str
    pattern: str
    do: Callable[[Path], None]


def truncate(path: Path) -> None:
    path.write_bytes(b"")


def fill_with_ones(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def fill_with_noise(path: Path) -> None:
    path.write_bytes(Random(9).randbytes(max(path.stat().st_size, 24)))


def make_uneven(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\1\2\3")


def pad_with_zeros(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(12 * 8 * 100))


ACTIONS = (Path.unlink, truncate, fill_with_ones, fill_with_noise, make_uneven, pad_with_zeros)
DAMAGES = [
    *(
        Damage(f"{action.__name__} {pattern}", pattern, action)
        for pattern in ("*.index", "*.timeindex")
        for action in ACTIONS
    ),
    *(
        Damage(f"{action.__name__} {pattern}", pattern, action)
        for pattern in ("*.snapshot", "leader-epoch-checkpoint")
        for action in (Path.unlink, truncate, fill_with_noise)
    ),
    Damage("unlink all but the log", "*[!g]", lambda path: path.unlink(missing_ok=True)),
]
PER_PARTITION = 90
VALUE = b"v" * 30_000


@pytest.mark.parametrize("stop", ["clean", "kill -9"])
def test_damaged_auxiliary_files_are_rebuilt(own_broker: OwnBroker, stop: str) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "damaged", partitions=len(DAMAGES), segment_bytes="1048576")
        producer_id, epoch = init_producer_id(connection)
        for number in range(PER_PARTITION):
            one = a_stamped_batch(producer_id, epoch, number)
            answers = produce(connection, {(topic, at): one for at in range(len(DAMAGES))})
            assert {answer.error_code for answer in answers.values()} == {0}
    if stop == "clean":
        assert broker.stop() == 0
    else:
        broker.kill()
    for partition, damage in enumerate(DAMAGES):
        directory = partition_directory(broker, topic, partition)
        assert len(segments(directory)) > 2
        for path in sorted(directory.glob(damage.pattern)):
            damage.do(path)
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        for partition, damage in enumerate(DAMAGES):
            last = a_stamped_batch(producer_id, epoch, PER_PARTITION - 1)
            check_reads(connection, (topic, partition), damage.name)
            check_writes(connection, (topic, partition), last, damage.name)


def a_stamped_batch(producer_id: int, epoch: int, number: int) -> bytes:
    producer = Sequenced(producer_id, epoch, number)
    stamp = BASE_MS + number * 1000
    return batch([VALUE], key=b"%d" % number, timestamp_ms=stamp, producer=producer)


def check_reads(connection: Connection, place: tuple[str, int], name: str) -> None:
    """By offset, by timestamp and by epoch, the log answers as before the damage."""
    host, port = connection.socket.getpeername()
    log = whole_log(f"{host}:{port}", place)
    assert [one.key for one in log] == [b"%d" % number for number in range(PER_PARTITION)], name
    for offset in (1, PER_PARTITION // 2, PER_PARTITION - 1):
        fetched = fetch_one(connection, FetchPlace(*place, offset=offset, bytes_max=1))
        assert fetched.error_code == 0, name
        assert fetched.records[:8] == offset.to_bytes(8, "big"), name
    for number in (0, 33, 60, PER_PARTITION - 1):
        found = list_offset(connection, place, BASE_MS + number * 1000)
        assert (found.error_code, found.offset) == (0, number), name
    assert list_offset(connection, place, BASE_MS + PER_PARTITION * 1000).offset == -1, name
    assert epoch_end(connection, place, 0)[0] == 0, name


def check_writes(connection: Connection, place: tuple[str, int], last: bytes, name: str) -> None:
    """A repeated batch is recognised, and the log goes on."""
    repeated = produce(connection, {place: last})[place]
    assert (repeated.error_code, repeated.base_offset) == (0, PER_PARTITION - 1), name
    fresh = produce(connection, {place: batch([b"next"])})[place]
    assert (fresh.error_code, fresh.base_offset) == (0, PER_PARTITION), name


@pytest.mark.parametrize("stop", ["clean", "kill -9"])
@pytest.mark.parametrize("action", [Path.unlink, truncate, fill_with_noise])
def test_lost_or_damaged_checkpoints_of_the_directory_lose_no_records(
    own_broker: OwnBroker, stop: str, action: Callable[[Path], None]
) -> None:
    broker = own_broker()
    with Connection(broker.bootstrap_servers) as connection:
        topic = a_topic(connection, "checkpointed", partitions=3)
        for number in range(10):
            for partition in range(3):
                produce(connection, {(topic, partition): batch([b"%d" % number])})
    if stop == "clean":
        assert broker.stop() == 0
    else:
        broker.kill()
    for path in broker.data.glob("*-checkpoint"):
        action(path)
    broker.start()
    for partition in range(3):
        log = whole_log(broker.bootstrap_servers, (topic, partition))
        assert [one.value for one in log] == [b"%d" % number for number in range(10)]
