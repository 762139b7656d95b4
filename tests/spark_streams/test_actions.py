"""On Spark, what has no case in the semantics battery: actions, headers, and sinks that choose."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla
from ottla.model.ids import TopicPartition
from ottla.streams import ProcessorContext, Record, Streams, StreamsBuilder, Topology
from spark.topics import make_topic, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewName = Callable[[], str]


def noted_in(file: Path) -> Callable[[Any, Any], None]:
    """An action that leaves a line."""

    def note(key: Any, value: Any) -> None:
        with file.open("a") as lines:
            lines.write(f"{key}={value}\n")

    return note


def shouted(record: Record, context: ProcessorContext) -> None:
    context.forward(record.with_value(f"{record.value}!"))


def by_length(words: str, folder: Path) -> Topology:
    builder = StreamsBuilder(value="str")
    stream = builder.stream(words)
    stream.foreach(noted_in(folder / "each"))
    stream.peek(noted_in(folder / "peeked")).process_values(shouted).to(
        lambda key, value: f"{words}-{'long' if len(value) > 4 else 'short'}",
        partitioner=lambda key, value, count: count - 1,
    )
    return builder.build()


def test_actions_see_every_record_and_sinks_choose_topic_and_partition(
    spark: "SparkSession", bootstrap: str, new_name: NewName, tmp_path: Path
) -> None:
    words = make_topic(bootstrap, new_name(), 1)
    for ending in ("short", "long"):
        make_topic(bootstrap, f"{words}-{ending}", 2)
    with ottla.Producer(bootstrap) as producer:
        for word in ("to", "question", "be"):
            producer.send(words, word.encode(), key=word[:1].encode(), headers=[("of", b"Hamlet")])
    Streams(
        by_length(words, tmp_path),
        app_id=new_name(),
        bootstrap_servers=bootstrap,
        checkpoint=tmp_path / "checkpoint",
    ).run_once(spark)

    assert rows_of(bootstrap, f"{words}-short") == {0: [], 1: [(b"t", b"to!"), (b"b", b"be!")]}
    assert rows_of(bootstrap, f"{words}-long") == {0: [], 1: [(b"q", b"question!")]}
    for file in ("each", "peeked"):
        assert set((tmp_path / file).read_text().split()) == {"t=to", "q=question", "b=be"}
    assert headers_of(bootstrap, f"{words}-long") == [("of", b"Hamlet")]


def headers_of(bootstrap: str, topic: str) -> list[tuple[str, bytes | None]]:
    """Those of the one record in partition 1."""
    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 1)])
        (record,) = consumer.poll(30.0)
    return list(record.headers)
