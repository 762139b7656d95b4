"""A changelog holds its store: what it says, put together again, is what the store has."""

from collections.abc import Iterable

import pytest

from ottla.streams import TopologyTestDriver
from ottla.streams.engine.changelog import changelog_records
from ottla.streams.engine.records import InputRecord, OutputRecord
from ottla.streams.serdes import NamedSerde
from ottla.streams.spark.kept_stores import logged_stores
from ottla.streams.spark.pages import PagedStore
from ottla.streams.spark.restoring import apply_record
from ottla.streams.store_spec import StoreKind, StoreSpec
from streams.running import Step, random_steps
from streams.topologies import ALL as TOPOLOGIES
from streams.topologies import build


class Memory:
    """Cells in a dictionary."""

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}

    def get(self, number: int) -> bytes | None:
        return self.pages.get(number)

    def put(self, number: int, data: bytes) -> None:
        self.pages[number] = data

    def delete(self, number: int) -> None:
        self.pages.pop(number, None)


def replayed(spec: StoreSpec, records: Iterable[OutputRecord]) -> dict[bytes, bytes]:
    store = PagedStore(Memory())
    for one in records:
        apply_record(spec, store, InputRecord(one.key, one.value, one.timestamp_ms))
    return dict(store.range(b"", None))


def compacted(records: Iterable[OutputRecord]) -> list[OutputRecord]:
    """The last of each key, in the order of their offsets."""
    every = list(records)
    last = {one.key: number for number, one in enumerate(every)}
    return [one for number, one in enumerate(every) if last[one.key] == number]


def played(name: str, steps: list[Step], size: int) -> TopologyTestDriver:
    driver = TopologyTestDriver(build(name), app_id="app", partitions=2)
    for first in range(0, len(steps), size):
        batch = [one for one in steps[first : first + size] if "advance" not in one]
        driver.pipe_batch((s["topic"], s["key"], s["value"], s["timestamp"]) for s in batch)
        driver.advance_wall_clock(7)
    return driver


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_store_comes_back_from_its_changelog_compacted_or_not(name: str) -> None:
    for seed in range(3):
        driver = played(name, random_steps(name, seed), 1 + seed * 5)
        for part in driver.topology.subtopologies:
            for spec in logged_stores(part):
                topic = driver.topology.changelog_topic(spec.name, "app")
                for partition, records in enumerate(driver.partition_of(topic)):
                    kept = driver._stores[spec.name, partition]
                    expected = dict(kept.range(b"", None))
                    where = f"{spec.name}-{partition}, seed {seed}"
                    assert replayed(spec, records) == expected, where
                    assert replayed(spec, compacted(records)) == expected, where


def test_a_held_update_that_left_its_place_and_took_it_again_is_there() -> None:
    raw = NamedSerde("bytes")
    spec = StoreSpec("held", StoreKind.SUPPRESSION, raw, raw)
    early, late = bytes(7) + b"\x0a", bytes(7) + b"\x14"
    changes = {b"t" + late + b"key": b"new", b"t" + early + b"key": None, b"kkey": late}
    records = changelog_records(spec, changes, "topic", 0)
    assert replayed(spec, records) == {b"kkey": late, b"t" + late + b"key": b"new"}
    assert replayed(spec, compacted(records)) == replayed(spec, records)
