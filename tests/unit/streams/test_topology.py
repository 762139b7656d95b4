"""Topologies as data: how they are cut, named, shown, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.streams import (
    KGroupedStream,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    col,
    hopping,
    join_within,
    key_value_store,
    session,
    tumbling,
    until_window_closes,
)
from ottla.streams.partitions import partition_counts, task_count


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines", value="str").flat_map_values(str.split, value="str")
    words.group_by(lambda key, value: value).count(store="counts").to_stream().to("out")
    return builder.build()


def test_a_topology_is_cut_where_records_change_their_partition() -> None:
    first, second = word_count().subtopologies
    assert first.topics() == ("lines",)
    assert second.topics() == ("counts-repartition",)
    assert [store.name for store in second.stores] == ["counts"]


def test_internal_topics_are_named_after_the_application() -> None:
    driver = TopologyTestDriver(word_count(), app_id="app")
    driver.pipe("lines", None, "a b a", 1)
    assert driver.topics() == [
        "app-counts-changelog",
        "app-counts-repartition",
        "app-progress-0-changelog",
        "app-progress-1-changelog",
        "lines",
        "out",
    ]


def test_a_topology_shows_its_nodes_and_stores() -> None:
    text = str(word_count())
    assert "Sub-topology 1\n    Source counts-repartition-source (topics: counts-rep" in text
    assert "(stores: counts)\n      --> KTABLE-TOSTREAM-0000000004" in text


def test_a_topology_is_drawn_in_two_languages() -> None:
    topology = word_count()
    assert topology.to_mermaid().startswith("graph TD\n  subgraph s0")
    assert '[("counts")]' in topology.to_mermaid()
    assert '"topic lines" -> "KSTREAM-SOURCE-0000000000";' in topology.to_dot()


def test_nodes_that_share_a_store_run_together() -> None:
    builder = StreamsBuilder()
    builder.add_store(key_value_store("shared"))
    for topic in ("a", "b"):
        builder.stream(topic).process(lambda record, context: None, stores=["shared"])
    assert len(builder.build().subtopologies) == 1


def test_several_aggregates_of_one_group_share_its_repartition_topic() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(lambda key, value: value)
    grouped.count(store="counts")
    grouped.windowed_by(tumbling(10)).count()
    assert len(builder.build().internal_topics) == 1


def test_a_table_keeps_a_store_only_if_somebody_looks_into_it() -> None:
    builder = StreamsBuilder()
    builder.table("in").map_values(str).to_stream().to("out")
    assert builder.build().stores == ()
    builder = StreamsBuilder()
    builder.stream("left").join(builder.table("in").map_values(str), lambda a, b: a)
    assert len(builder.build().stores) == 1


def test_a_topology_can_be_sent_to_another_process() -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    builder = StreamsBuilder()
    builder.stream("in").filter(col("a") > 1).map_values(lambda value: value["a"]).to("out")
    topology = cloudpickle.loads(cloudpickle.dumps(builder.build()))
    driver = TopologyTestDriver(topology)
    driver.pipe_all("in", [("k", {"a": 1}, 0), ("k", {"a": 2}, 0)])
    assert [record.value for record in driver.read("out")] == [2]


# --- how many partitions -------------------------------------------------------------------------


def test_a_repartition_topic_is_as_wide_as_what_it_comes_from() -> None:
    counts = partition_counts(word_count(), {"lines": 4})
    assert counts == {"lines": 4, "counts-repartition": 4}
    assert [task_count(part, counts) for part in word_count().subtopologies] == [4, 4]


def test_a_repartition_topic_is_as_wide_as_what_it_is_joined_with() -> None:
    builder = StreamsBuilder()
    rekeyed = builder.stream("left").select_key(col("other"))
    rekeyed.join(builder.table("right"), lambda a, b: a, name="join").to("out")
    counts = partition_counts(builder.build(), {"left": 2, "right": 5})
    assert counts["join-stream-repartition"] == 5


def test_a_given_number_of_partitions_stays() -> None:
    builder = StreamsBuilder()
    builder.stream("in").repartition(partitions=7, name="wide").to("out")
    assert partition_counts(builder.build(), {"in": 2})["wide-repartition"] == 7


def test_topics_that_are_joined_must_be_equally_wide() -> None:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.table("right"), lambda a, b: a)
    with pytest.raises(TopologyError, match="'left' has 2, 'right' has 3"):
        partition_counts(builder.build(), {"left": 2, "right": 3})


def test_a_topic_that_is_not_there_is_named() -> None:
    with pytest.raises(TopologyError, match="'lines' is read but does not exist"):
        partition_counts(word_count(), {})


# --- what is refused -----------------------------------------------------------------------------


def _read_twice(builder: StreamsBuilder) -> Any:
    builder.stream("in")
    builder.table("in")
    builder.build()


def _grouped(builder: StreamsBuilder) -> KGroupedStream:
    return builder.stream("in").group_by_key()


REFUSED: list[tuple[str, Callable[[StreamsBuilder], Any]]] = [
    ("reads no topic", lambda b: b.build()),
    ("read twice", _read_twice),
    ("name the topics", lambda b: b.stream()),
    ("no serde named 'yaml'", lambda b: b.stream("in", value="yaml")),
    ("neither a function nor", lambda b: b.stream("in").filter(3)),
    ("which nobody added", lambda b: b.stream("in").process(print, stores=["none"])),
    ("give within=", lambda b: b.stream("in").join(b.stream("b"), print)),
    ("leave within=", lambda b: b.stream("a").join(b.table("b"), print, within=join_within(1))),
    ("give on=", lambda b: b.stream("a").join(b.global_table("b"), print)),
    ("one builder", lambda b: b.stream("a").join(StreamsBuilder().table("b"), print)),
    ("is joined with a table", lambda b: b.table("a").join(b.stream("b"), print)),
    ("needs a windowed table", lambda b: b.table("a").suppress(until_window_closes())),
    ("at least 1 ms", lambda b: tumbling(0)),
    ("gaps", lambda b: hopping(5, 6)),
    ("timedelta or whole", lambda b: tumbling(1.5)),
    ("give merger", lambda b: _grouped(b).windowed_by(session(5)).aggregate(int, print)),
    ("must be a function", lambda b: b.table("a").group_by(print).aggregate(0, print, print)),
    ("must be a function", lambda b: _grouped(b).cogroup(print).aggregate(0)),
    (
        "give merger",
        lambda b: _grouped(b).cogroup(print).windowed_by(session(5)).aggregate(int),
    ),
    ("is no window", lambda b: _grouped(b).windowed_by(10)),
    ('on "update" or on "close"', lambda b: _grouped(b).windowed_by(tumbling(1), emit="x")),
    ("a function that makes", lambda b: _grouped(b).aggregate(0, print)),
    ("two nodes named", lambda b: b.stream("a", name="x").filter(print, name="x")),
    ("two stores named", lambda b: [b.table(topic, store="s") for topic in "ab"]),
    ("cannot name a store", lambda b: b.table("a", store="no good")),
    ("cannot be the name of a topic", lambda b: b.stream("a").to("")),
    ("two branches", lambda b: b.stream("a").split().branch(print).branch(print, name="1")),
    ("at least one partition", lambda b: b.stream("a").repartition(partitions=0)),
]


@pytest.mark.parametrize(("sentence", "draw"), REFUSED, ids=[sentence for sentence, _ in REFUSED])
def test_a_topology_that_makes_no_sense_is_refused_in_a_sentence(
    sentence: str, draw: Callable[[StreamsBuilder], Any]
) -> None:
    with pytest.raises(TopologyError, match=sentence):
        draw(StreamsBuilder())
