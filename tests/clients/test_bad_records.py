"""A record that cannot be read: nobody loses the good ones around it, and nothing hides it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.consumer.unreadable import UnreadableBatch, UnreadableRecord
from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition
from ottla.testing import Broker

pyarrow = pytest.importorskip("pyarrow")

WAIT_S = 60.0
COUNT = 2000
BAD = 10
GOOD = [number for number in range(COUNT) if number != BAD]
NewName = Callable[[], str]
JSON: dict[str, Any] = {"auto_offset_reset": "earliest", "value_deserializer": "json"}
WAYS: list[dict[str, Any]] = [
    {},
    {"max_poll_records": 7},
    {"enable_auto_commit": False},
    {"auto_commit_interval_ms": 10},
]


def write(bootstrap: str, topic: str, count: int = COUNT, bad: int = BAD) -> None:
    with ottla.Producer(bootstrap) as producer:
        for number in range(count):
            value = b"BAD" if number == bad else b'{"n": %d}' % number
            producer.send(topic, value, b"k%d" % number, partition=0, headers={"h": b"x"})


@pytest.fixture
def topic(bootstrap: str, new_name: NewName) -> str:
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(ottla.NewTopic(name, 2))
    write(bootstrap, name)
    return name


def until_error(consumer: ottla.Consumer) -> tuple[list[int], UnreadableRecord]:
    found: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            found += [record.offset for record in consumer.poll(1.0)]
        except UnreadableRecord as error:
            return found, error
    raise AssertionError(f"no error after {len(found)} records")


def read_rest(poll: Callable[[], list[ConsumerRecord]], count: int) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        found += [record.value["n"] for record in poll()]
        assert time.monotonic() < deadline, f"only {len(found)} of {count}"
    return found


@pytest.mark.parametrize("how", WAYS)
def test_a_group_stands_before_it_until_it_is_skipped(
    bootstrap: str, topic: str, new_name: NewName, how: dict[str, Any]
) -> None:
    here, group = TopicPartition(topic, 0), new_name()
    place = {"bootstrap_servers": bootstrap, "group_id": group}
    with ottla.Consumer(topic, **place, **JSON, **how) as consumer:
        before, error = until_error(consumer)
        assert before == list(range(BAD))
        assert (error.topic, error.partition, error.offset) == (topic, 0, BAD)
        record = error.record
        assert (record.key, record.value, record.headers) == (b"k10", b"BAD", (("h", b"x"),))
        assert record.timestamp_ms > 0
        for _ in range(3):
            assert until_error(consumer)[0] == []
        assert consumer.position(here) == BAD
        assert consumer.lag(here) == COUNT - BAD
        consumer.commit()
        assert consumer.committed(here)[here].offset == BAD
    with ottla.Consumer(topic, **place, **JSON, **how) as consumer:
        found, error = until_error(consumer)
        assert found == []
        consumer.skip(error)
        assert read_rest(lambda: consumer.poll(1.0), COUNT - BAD - 1) == GOOD[BAD:]


@pytest.mark.parametrize("how", WAYS)
def test_a_consumer_without_a_group_does_the_same_and_may_seek(
    bootstrap: str, topic: str, how: dict[str, Any]
) -> None:
    here = TopicPartition(topic, 0)
    how = {name: value for name, value in how.items() if name == "max_poll_records"}
    with ottla.Consumer(bootstrap_servers=bootstrap, **JSON, **how) as consumer:
        consumer.assign([here])
        assert until_error(consumer)[0] == list(range(BAD))
        assert until_error(consumer)[0] == []
        consumer.seek(here, BAD + 1)
        assert read_rest(lambda: consumer.poll(1.0), COUNT - BAD - 1) == GOOD[BAD:]


def test_a_loop_does_the_same_and_commits_no_more_than_it_handed_out(
    bootstrap: str, topic: str, new_name: NewName
) -> None:
    here, group = TopicPartition(topic, 0), new_name()
    place = {"bootstrap_servers": bootstrap, "group_id": group}
    seen: list[int] = []
    with ottla.Consumer(topic, **place, **JSON) as consumer:
        for record in consumer:
            seen.append(record.offset)
            if len(seen) == 4:
                break
    with ottla.Consumer(topic, **place, **JSON) as consumer:
        assert consumer.committed(here)[here].offset == 4
        with pytest.raises(UnreadableRecord) as caught:
            seen.extend(record.offset for record in consumer)
        consumer.skip(caught.value)
        for record in consumer:
            seen.append(record.offset)
            if len(seen) == COUNT - 1:
                break
    assert seen == GOOD


async def collect(consumer: ottla.aio.Consumer, seen: list[int]) -> None:
    while True:
        seen += [record.offset for record in await consumer.poll()]


@pytest.mark.parametrize("how", WAYS)
def test_asyncio_does_the_same(
    bootstrap: str, topic: str, new_name: NewName, how: dict[str, Any]
) -> None:
    here, group = TopicPartition(topic, 0), new_name()
    place = {"bootstrap_servers": bootstrap, "group_id": group}

    async def main() -> list[int]:
        seen: list[int] = []
        async with ottla.aio.Consumer(topic, **place, **JSON, **how) as consumer:
            async with asyncio.timeout(WAIT_S):
                with pytest.raises(UnreadableRecord):
                    await collect(consumer, seen)
                assert seen == list(range(BAD))
                with pytest.raises(UnreadableRecord) as caught:
                    await anext(consumer)
                await consumer.commit()
                assert (await consumer.committed(here))[here].offset == BAD
                consumer.skip(caught.value)
                async for record in consumer:
                    seen.append(record.offset)
                    if len(seen) == COUNT - 1:
                        return seen
        raise AssertionError

    assert asyncio.run(main()) == GOOD


def test_a_function_hears_of_it_and_the_rest_goes_on(bootstrap: str, topic: str) -> None:
    letters: list[Any] = []
    here = TopicPartition(topic, 0)
    with ottla.Consumer(bootstrap_servers=bootstrap, on_error=letters.append, **JSON) as consumer:
        consumer.assign([here])
        assert read_rest(lambda: consumer.poll(1.0), COUNT - 1) == GOOD
    assert [(letter.offset, letter.record.value) for letter in letters] == [(BAD, b"BAD")]


def test_a_function_may_use_the_consumer_and_what_it_raises_loses_nothing(
    bootstrap: str, topic: str
) -> None:
    here = TopicPartition(topic, 0)
    positions: list[int] = []

    def fail_once(error: UnreadableRecord) -> None:
        positions.append(consumer.position(here))
        if len(positions) == 1:
            raise ZeroDivisionError

    with ottla.Consumer(bootstrap_servers=bootstrap, on_error=fail_once, **JSON) as consumer:
        consumer.assign([here])
        seen: list[int] = []
        with pytest.raises(ZeroDivisionError):
            seen.extend(record.offset for record in consumer)
        assert seen == list(range(BAD))
        assert read_rest(lambda: consumer.poll(1.0), COUNT - BAD - 1) == GOOD[BAD:]
    assert positions == [BAD, BAD]


def test_a_coroutine_function_is_waited_for(bootstrap: str, topic: str) -> None:
    letters: list[int] = []

    async def bury(error: UnreadableRecord) -> None:
        await asyncio.sleep(0)
        letters.append(error.offset)

    async def main() -> list[int]:
        seen: list[int] = []
        how = {**JSON, "on_error": bury}
        async with ottla.aio.Consumer(bootstrap_servers=bootstrap, **how) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            async with asyncio.timeout(WAIT_S):
                while len(seen) < COUNT - 1:
                    seen += [record.offset for record in await consumer.poll()]
        return seen

    assert asyncio.run(main()) == GOOD
    assert letters == [BAD]
    with pytest.raises(ConfigError, match="coroutine"):
        ottla.Consumer(bootstrap_servers=bootstrap, on_error=bury)


def test_all_bad_records_may_be_skipped(
    bootstrap: str, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    name = new_name()
    with ottla.Producer(bootstrap) as producer:
        for number in range(3000):
            producer.send(name, b"5" if number % 100 == 50 else b"BAD", partition=0)
    with ottla.Consumer(bootstrap_servers=bootstrap, on_error="skip", **JSON) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        seen: list[int] = []
        deadline = time.monotonic() + WAIT_S
        while len(seen) < 30:
            seen += [record.offset for record in consumer.poll(1.0)]
            assert time.monotonic() < deadline
    assert seen == list(range(50, 3000, 100))
    assert f"{name}-0 at offset 0 cannot be deserialized" in caplog.text
    with pytest.raises(ConfigError, match="on_error"):
        ottla.Consumer(bootstrap_servers=bootstrap, on_error="drop")  # type: ignore[arg-type]


def test_other_partitions_go_on_beside_a_bad_one(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        for number in range(500):
            producer.send(topic, b'{"n": %d}' % number, partition=1)
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    seen: list[int] = []
    errors = 0
    with ottla.Consumer(bootstrap_servers=bootstrap, max_poll_records=10, **JSON) as consumer:
        consumer.assign(both)
        deadline = time.monotonic() + WAIT_S
        while len(seen) < 500 or errors < 10:
            assert time.monotonic() < deadline
            try:
                seen += [r.offset for r in consumer.poll(1.0) if r.partition == 1]
            except UnreadableRecord:
                errors += 1
    assert seen == list(range(500))


def test_an_interceptor_that_raises_loses_nothing(bootstrap: str, topic: str) -> None:
    class Once:
        calls = 0

        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            self.calls += bool(records)
            if records and self.calls == 1:
                raise ZeroDivisionError
            return records

        def on_commit(self, offsets: object) -> None: ...

    with ottla.Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", interceptors=[Once()]
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ZeroDivisionError):
            consumer.poll(WAIT_S)
        assert consumer.poll(WAIT_S)[0].offset == 0


# --- a damaged batch


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Broker]:
    """A broker whose topic t has three batches of ten records, the second with a flipped bit."""
    with Broker(data=tmp_path) as broker:
        for start in range(0, 30, 10):
            with ottla.Producer(broker.bootstrap_servers, linger_ms=1000) as producer:
                for number in range(start, start + 10):
                    producer.send("t", b'{"n": %d}' % number, partition=0)
        segment = next(tmp_path.glob("**/t-0/*.log"))
        data = bytearray(segment.read_bytes())
        at = data.index(b'{"n": 15}')
        data[at + 2] ^= 1
        with segment.open("r+b") as file:
            file.seek(at + 2)
            file.write(data[at + 2 : at + 3])
        yield broker


@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_damaged_batch_is_told_after_those_before_it(damaged: Broker, is_arrow: bool) -> None:
    here = TopicPartition("t", 0)

    def poll() -> list[int]:
        if is_arrow:
            return list(consumer.poll_arrow(1.0)["offset"].to_pylist())
        return [record.offset for record in consumer.poll(1.0)]

    with ottla.Consumer(
        bootstrap_servers=damaged.bootstrap_servers, group_id="g", **JSON
    ) as consumer:
        consumer.assign([here])
        seen: list[int] = []
        deadline = time.monotonic() + WAIT_S
        for _ in range(3):
            with pytest.raises(UnreadableBatch) as caught:
                seen.extend(offset for offsets in iter(poll, None) for offset in offsets)
            assert seen == list(range(10))
            assert consumer.position(here) == 10
        error = caught.value
        assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 10, 20)
        assert len(error.data) > 100
        consumer.commit()
        assert consumer.committed(here)[here].offset == 10
        consumer.skip(error)
        while len(seen) < 20:
            seen += poll()
            assert time.monotonic() < deadline
    assert seen == [*range(10), *range(20, 30)]


@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_function_hears_of_a_damaged_batch(damaged: Broker, is_arrow: bool) -> None:
    letters: list[Any] = []

    async def main() -> list[int]:
        seen: list[int] = []
        async with ottla.aio.Consumer(
            bootstrap_servers=damaged.bootstrap_servers, on_error=letters.append, **JSON
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            async with asyncio.timeout(WAIT_S):
                while len(seen) < 20:
                    if is_arrow:
                        seen += (await consumer.poll_arrow())["offset"].to_pylist()
                    else:
                        seen += [record.offset for record in await consumer.poll()]
        return seen

    assert asyncio.run(main()) == [*range(10), *range(20, 30)]
    assert [letter.offset for letter in letters] == [10]
