"""An application without its checkpoint goes on from its group and its changelogs, exactly."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.streams import Streams, StreamsBuilder, Topology
from ottla.streams.failures import TopologyError
from ottla.streams.spark.failure_sentence import QueryFailed
from spark.topics import make_topic, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewName = Callable[[], str]
PARTITIONS = 2


class Counting:
    """Counts the values of a topic into another one, through a repartition topic."""

    def __init__(self, spark: "SparkSession", bootstrap: str, new_name: NewName) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.app_id = new_name()
        self.source = make_topic(bootstrap, new_name(), PARTITIONS)
        self.counts = make_topic(bootstrap, new_name(), PARTITIONS)

    @property
    def repartition(self) -> str:
        return f"{self.app_id}-counts-repartition"

    def topology(self) -> Topology:
        builder = StreamsBuilder(value="str")
        words = builder.stream(self.source).select_key(lambda _, word: word)
        words.group_by_key().count(store="counts").to_stream().to(self.counts)
        return builder.build()

    def run(self, checkpoint: Path | str, *words: str) -> None:
        """Works off all there is, and these."""
        with ottla.Producer(self.bootstrap) as producer:
            for number, word in enumerate(words):
                producer.send(self.source, word.encode(), partition=number % PARTITIONS)
        app = Streams(
            self.topology(),
            app_id=self.app_id,
            bootstrap_servers=self.bootstrap,
            checkpoint=checkpoint,
        )
        app.run_once(self.spark)

    def counted(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for rows in rows_of(self.bootstrap, self.counts).values():
            for key, value in rows:
                assert key is not None
                assert value is not None
                found.setdefault(key.decode(), []).append(int.from_bytes(value))
        return found

    def starts(self) -> list[int]:
        """The first offsets of the repartition topic."""
        with ottla.Admin(self.bootstrap) as admin:
            listed = admin.list_offsets(self.repartition, dict.fromkeys(range(PARTITIONS), -2))
        return [listed[number].offset for number in range(PARTITIONS)]


@pytest.fixture
def counting(spark: "SparkSession", bootstrap: str, new_name: NewName) -> Counting:
    return Counting(spark, bootstrap, new_name)


@pytest.mark.parametrize("is_url", [False, True], ids=["a folder", "a URL"])
def test_a_lost_checkpoint_costs_nothing(
    counting: Counting, tmp_path: Path, *, is_url: bool
) -> None:
    checkpoint = f"file://{tmp_path}/state" if is_url else tmp_path / "state"
    counting.run(checkpoint, "a", "b", "a", "c")
    shutil.rmtree(tmp_path / "state")
    counting.run(checkpoint, "a", "c", "d")
    shutil.rmtree(tmp_path / "state" / "1")
    counting.run(checkpoint, "b", "a")
    assert counting.counted() == {"a": [1, 2, 3, 4], "b": [1, 2], "c": [1, 2], "d": [1]}


def test_a_checkpoint_without_a_finished_micro_batch_is_as_good_as_none(
    counting: Counting, tmp_path: Path
) -> None:
    counting.run(tmp_path, "a", "b")
    for part in ("0", "1"):
        shutil.rmtree(tmp_path / part / "commits")
    counting.run(tmp_path, "a")
    assert counting.counted() == {"a": [1, 2], "b": [1]}


def test_an_application_from_an_older_checkpoint_is_refused_before_it_writes(
    counting: Counting, tmp_path: Path
) -> None:
    counting.run(tmp_path / "old", "a")
    counting.run(tmp_path / "new", "a", "b")
    with pytest.raises(QueryFailed, match="another one of the same name has run"):
        counting.run(tmp_path / "old", "c")
    counting.run(tmp_path / "new")
    assert counting.counted() == {"a": [1, 2], "b": [1], "c": [1]}


def test_state_without_offsets_is_refused_with_what_to_do(
    counting: Counting, tmp_path: Path
) -> None:
    counting.run(tmp_path, "a")
    shutil.rmtree(tmp_path)
    with ottla.Admin(counting.bootstrap) as admin:
        admin.delete_groups(counting.app_id)
    with pytest.raises(TopologyError, match=r"there is state in .* use another app_id"):
        counting.run(tmp_path, "a")
    assert counting.counted() == {"a": [1]}


def test_records_of_repartition_topics_are_deleted_once_they_are_done(
    counting: Counting, tmp_path: Path
) -> None:
    counting.run(tmp_path, *"aabbccab")
    assert sum(counting.starts()) >= 8
    shutil.rmtree(tmp_path)
    counting.run(tmp_path, "c")
    assert counting.counted() == {"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}
