"""An idle stream waits for records at the brokers, and sees them as soon as they are there.

The driver's half alone, without a JVM.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import ottla
from ottla.errors import ConfigError
from ottla.spark.cluster_access import ClusterAccess
from ottla.spark.offsets import Offsets, TopicOffsets
from ottla.spark.options import Use
from ottla.spark.source_plan import IDLE_WAIT_MS_DEFAULT, source_plan
from ottla.spark.stream_reader import StreamReader
from spark.topics import fill, make_topic

NewName = Callable[[], str]
LONG_MS = "100000"
"""Longer than a test may take: whoever waits for it was not woken."""
WAIT_S = 60


class Watched:
    """A reader that says when it begins to wait."""

    def __init__(self, bootstrap: str, topic: str, idle_wait_ms: str) -> None:
        options = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "idleWaitMs": idle_wait_ms,
        }
        self.reader = StreamReader(source_plan(Use.STREAM_READ, options))
        self.waits = threading.Event()
        self._thread = ThreadPoolExecutor(1)

    def ask(self, start: TopicOffsets) -> "Future[TopicOffsets]":
        return self._thread.submit(self.reader.latestOffset, start, ReadAllAvailable())

    def close(self) -> None:
        self._thread.shutdown()
        self.reader.stop()


@pytest.fixture
def watched(
    bootstrap: str, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Watched, str]]:
    topic = make_topic(bootstrap, new_name())
    found = Watched(bootstrap, topic, LONG_MS)
    real = ClusterAccess.wait_for_records

    def wait_for_records(access: ClusterAccess, ends: Offsets, wait_ms: int) -> bool:
        found.waits.set()
        return real(access, ends, wait_ms)

    monkeypatch.setattr(ClusterAccess, "wait_for_records", wait_for_records)
    yield found, topic
    found.close()


def test_a_record_ends_the_wait(bootstrap: str, watched: tuple[Watched, str]) -> None:
    reader, topic = watched
    start = {topic: {"0": 0, "1": 0}}
    answer = reader.ask(start)
    assert reader.waits.wait(WAIT_S)
    fill(bootstrap, topic, [b"x"], partition=1)
    assert answer.result(WAIT_S) == {topic: {"0": 0, "1": 1}}


def test_records_of_an_open_transaction_do_not_end_it_but_their_commit_does(
    bootstrap: str, watched: tuple[Watched, str]
) -> None:
    reader, topic = watched
    with ottla.Producer(bootstrap, transactional_id=f"of-{topic}") as producer:
        producer.begin_transaction()
        producer.send(topic, b"x", partition=0)
        producer.flush()
        answer = reader.ask({topic: {"0": 0, "1": 0}})
        assert reader.waits.wait(WAIT_S)
        assert not answer.done()
        producer.commit_transaction()
    assert answer.result(WAIT_S)[topic]["0"] == 2, "the record and the marker"


def test_what_is_there_already_is_not_waited_for(
    bootstrap: str, watched: tuple[Watched, str]
) -> None:
    reader, topic = watched
    fill(bootstrap, topic, [b"x", b"y"])
    assert reader.ask({topic: {"0": 1, "1": 0}}).result(WAIT_S) == {topic: {"0": 2, "1": 0}}
    assert not reader.waits.is_set()


def test_a_query_that_reads_what_is_available_now_does_not_wait(
    watched: tuple[Watched, str],
) -> None:
    reader, topic = watched
    reader.reader.prepareForTriggerAvailableNow()
    start = {topic: {"0": 0, "1": 0}}
    assert reader.ask(start).result(WAIT_S) == start
    assert not reader.waits.is_set()


@pytest.mark.parametrize("idle_wait_ms", ["0", "1"])
def test_where_nothing_comes_the_offsets_stay(
    bootstrap: str, new_name: NewName, idle_wait_ms: str
) -> None:
    topic = make_topic(bootstrap, new_name())
    reader = Watched(bootstrap, topic, idle_wait_ms)
    start = {topic: {"0": 0, "1": 0}}
    assert reader.ask(start).result(WAIT_S) == start
    reader.close()


def test_the_wait_has_a_default_and_is_for_streams_only() -> None:
    options = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
    assert source_plan(Use.STREAM_READ, options).idle_wait_ms == IDLE_WAIT_MS_DEFAULT
    with pytest.raises(ConfigError, match="idleWaitMs"):
        source_plan(Use.READ, {**options, "idleWaitMs": "5"})
    with pytest.raises(ConfigError, match="idleWaitMs"):
        source_plan(Use.STREAM_READ, {**options, "idleWaitMs": "-1"})
