"""Stores read from their changelogs, as a task's commits leave them; no Spark is needed."""

from collections.abc import Callable

import pytest

import ottla
from ottla.streams import Streams, StreamsBuilder, Topology, TopologyTestDriver, Windowed, tumbling
from ottla.streams import session as session_windows
from ottla.streams.failures import TopologyError
from spark.topics import make_topic

NewName = Callable[[], str]


class Published:
    """A test driver whose changelogs are written to real topics."""

    def __init__(self, bootstrap: str, app_id: str, topology: Topology) -> None:
        self.driver = TopologyTestDriver(topology, app_id=app_id)
        self.app = Streams(topology, app_id=app_id, bootstrap_servers=bootstrap)
        self._bootstrap = bootstrap
        self._topics = [
            make_topic(bootstrap, f"{app_id}-{spec.name}-changelog", 1)
            for spec in topology.stores
            if spec.logged
        ]
        self._written = dict.fromkeys(self._topics, 0)

    def pipe(self, *records: tuple[str, str | None, int]) -> None:
        self.driver.pipe_all("in", records)
        with ottla.Producer(self._bootstrap) as producer:
            for topic in self._topics:
                fresh = self.driver.read_raw(topic)[self._written[topic] :]
                for one in fresh:
                    producer.send(
                        topic, one.value, key=one.key, timestamp_ms=one.timestamp_ms, partition=0
                    )
                self._written[topic] += len(fresh)


def test_a_table_is_read_by_key_by_range_and_whole(bootstrap: str, new_name: NewName) -> None:
    builder = StreamsBuilder(value="str")
    builder.table("in", store="rows")
    published = Published(bootstrap, new_name(), builder.build())
    rows = published.app.store("rows")
    assert rows.get("a") is None
    published.pipe(("b", "2", 0), ("a", "1", 1), ("c", "3", 2))
    assert rows.get("a") == "1"
    assert list(rows.all()) == [("a", "1"), ("b", "2"), ("c", "3")]
    assert list(rows.range("a", "c")) == [("a", "1"), ("b", "2")]
    published.pipe(("a", None, 3), ("b", "4", 4))
    assert rows.get("a") is None
    assert list(rows.all()) == [("b", "4"), ("c", "3")]


def test_windows_are_read_by_key_and_time_until_they_are_forgotten(
    bootstrap: str, new_name: NewName
) -> None:
    builder = StreamsBuilder(value="str")
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(tumbling(10, grace=100)).count(store="counts")
    published = Published(bootstrap, new_name(), builder.build())
    counts = published.app.store("counts")
    published.pipe(("a", "x", 1), ("a", "y", 2), ("b", "z", 3), ("a", "x", 11))
    assert counts.get("a", 0) == 2
    assert counts.fetch("a") == [(Windowed("a", 0, 10), 2), (Windowed("a", 10, 20), 1)]
    assert list(counts.all(0, 10)) == [(Windowed("a", 0, 10), 2), (Windowed("b", 0, 10), 1)]
    published.pipe(("a", "x", 200_000_000))
    assert [window.start_ms for window, _ in counts.all()] == [200_000_000]


def test_sessions_are_read_as_they_grow_together(bootstrap: str, new_name: NewName) -> None:
    builder = StreamsBuilder(value="str")
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(session_windows(5, grace=50)).count(store="visits")
    published = Published(bootstrap, new_name(), builder.build())
    visits = published.app.store("visits")
    published.pipe(("a", "x", 1), ("a", "x", 9), ("b", "x", 9))
    assert [window[1:] for window, _ in visits.fetch("a")] == [(1, 1), (9, 9)]
    published.pipe(("a", "x", 5))
    assert visits.fetch("a") == [(Windowed("a", 1, 9), 3)]
    assert sorted(visits.all()) == [(Windowed("a", 1, 9), 3), (Windowed("b", 9, 9), 1)]


def test_a_store_that_cannot_be_read_is_named(new_name: NewName) -> None:
    builder = StreamsBuilder(value="str")
    builder.table("in", store="rows")
    app = Streams(builder.build(), app_id=new_name())
    with pytest.raises(TopologyError, match="no store 'row' to read; there are rows"):
        app.store("row")
