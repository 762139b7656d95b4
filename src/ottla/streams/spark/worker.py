"""What a Spark task does with a sub-topology, in a Python process of Spark's.

The topology comes pickled with its functions, and is unpacked once a process. Tasks of the engine
are made anew for every micro-batch: what they must not forget is in their stores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pyspark import cloudpickle

from ottla.streams.engine.records import InputRecord, OutputRecord
from ottla.streams.engine.stores import MemoryStore, Store
from ottla.streams.engine.task import Surroundings, Task
from ottla.streams.spark.global_tables import global_store
from ottla.streams.spark.packets import input_records
from ottla.streams.store_spec import StoreSpec
from ottla.streams.topology import Subtopology, SubtopologyId, Topology

_TOPOLOGIES_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class Work:
    """A sub-topology of an application, as it is sent to where its tasks run."""

    pickled: bytes
    """The topology."""
    paths: tuple[str, ...]
    """Where modules of the topology's functions are looked for."""
    part: SubtopologyId
    app_id: str
    partition_counts: Mapping[str, int]
    kafka: Mapping[str, str]
    """Settings of clients, under Kafka's names."""
    changelogs: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Where state is to come from changelogs: the offsets of each store's, by partition."""

    @property
    def topology(self) -> Topology:
        return _topology(self.pickled, self.paths)

    @property
    def subtopology(self) -> Subtopology:
        return self.topology.subtopologies[self.part]


def pickled(topology: Topology) -> bytes:
    """A topology with its functions."""
    data = cloudpickle.dumps(topology)  # type: ignore[no-untyped-call]
    assert isinstance(data, bytes)
    return data


@lru_cache(maxsize=_TOPOLOGIES_KEPT)
def _topology(data: bytes, paths: tuple[str, ...]) -> Topology:
    sys.path += [path for path in paths if path not in sys.path]
    topology = cloudpickle.loads(data)
    assert isinstance(topology, Topology)
    return topology


OpenStore = Callable[[str], Store]


def new_task(work: Work, partition: int, open_store: OpenStore, now_ms: int) -> Task:
    """The engine's task for one partition number, on its stores."""

    def store(spec: StoreSpec) -> Store:
        if spec.is_global:
            return global_store(work.topology, spec, work.kafka)
        return open_store(spec.name)

    surroundings = Surroundings(work.app_id, store, work.partition_counts, now_ms)
    return Task(work.topology, work.subtopology, partition, surroundings)


def forgetful_store(name: str) -> Store:
    """For tasks that have nothing to remember."""
    del name
    return MemoryStore()


def in_order(packets: Iterable[Any]) -> dict[str, list[InputRecord]]:
    """The records of packets by topic, in the order of offsets."""
    found: dict[str, list[InputRecord]] = {}
    for row in sorted(packets, key=lambda row: (row.topic, row.offset)):
        found.setdefault(row.topic, []).extend(input_records(bytes(row.records)))
    return found


def finish(task: Task) -> list[OutputRecord]:
    """What a task wants written, its changelogs included; its stores have the changes then."""
    return [*task.take_outputs(), *task.commit()]
