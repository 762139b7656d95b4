"""Sub-topologies without state on whole packets: columns in, columns out, no object for a record.

Where all that stands between a source and its sinks is one chain (`engine/fusing.py`), its code is
written as a loop over the columns of a packet. Keys, timestamps and headers that stay as they are
are never looked at one by one; of JSON only the fields that expressions name are read; what was
made is serialised, and placed, a column at a time.

A chain gives what a task of the engine gives, or fails: then the task is asked, and gives the exact
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
import pyarrow
from pyarrow import compute

from ottla.records.arrow_encode import place_table
from ottla.streams.engine.fusing import ChainWriter
from ottla.streams.expression_code import (
    Code,
    Made,
    Name,
    NeedsWhole,
    Part,
    Row,
    Same,
    Scope,
    whole,
)
from ottla.streams.operators import Sink, Source
from ottla.streams.serdes import FunctionSerde, NamedSerde, Serde, StructSerde
from ottla.streams.spark.json_rows import NotByColumns, UnfitNames, json_rows, row_type
from ottla.streams.spark.packets import column_packets, read_columns
from ottla.streams.topology import Node, Subtopology, Topology

Reached = tuple[list[int], list[Any], list[Any]]
"""What came to a sink: numbers of rows, and new keys and values where there are any."""
_UNCHANGED: Final = tuple(NamedSerde(name) for name in ("str", "bytes", "int"))
"""Bytes that are read and written again are the same bytes."""
_INT_BYTES: Final = 8
_SUBTOPOLOGIES_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """A sink at the end of a chain, and what of the source's records it writes as it is."""

    topic: str
    key: Serde
    value: Serde
    keeps_key: bool
    keeps_value: bool


@dataclass(frozen=True, slots=True)
class ColumnChain:
    """From one source to its sinks."""

    source: Source
    run: Callable[[Sequence[Any], Sequence[Any]], list[Reached]]
    sinks: tuple[SinkColumns, ...]
    uses_key: bool
    uses_value: bool
    row: type[msgspec.Struct] | None
    """What is read of JSON, where that is not all of it."""

    def outputs(
        self, read: pyarrow.RecordBatch, partition_counts: Mapping[str, int]
    ) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        """What is to be written, by topic, of the columns of a packet."""
        _check(read)
        keys = _seen(read.column("key"), self.source.key, is_used=self.uses_key)
        if self.row is None:
            values = _seen(read.column("value"), self.source.value, is_used=self.uses_value)
        else:
            values = json_rows(read.column("value"), self.row)
        for sink, made in zip(self.sinks, self.run(keys, values), strict=True):
            if made[0]:
                yield sink.topic, _rows(read, sink, made, partition_counts.get(sink.topic))


def packets_by_columns(
    chains: Mapping[str, ColumnChain],
    topic: str,
    packed: bytes,
    partition_counts: Mapping[str, int],
) -> list[bytes] | None:
    """What is to be written for a packet that was read; None where a task has to find that out."""
    if topic not in chains or not packed:
        return None
    try:
        outputs = chains[topic].outputs(read_columns(packed), partition_counts)
        return [one for to_topic, rows in outputs for one in column_packets(to_topic, rows)]
    except Exception:  # whatever it is, the task meets it as well and says at which record
        return None


def column_chains(topology: Topology, part: Subtopology, app_id: str) -> Mapping[str, ColumnChain]:
    """Chains by the topics they read, of the sources below which there is nothing else."""
    return _column_chains(Same(topology), Same(part), app_id)


@lru_cache(maxsize=_SUBTOPOLOGIES_KEPT)
def _column_chains(
    topology_same: Same[Topology], part_same: Same[Subtopology], app_id: str
) -> Mapping[str, ColumnChain]:
    topology, part = topology_same.held, part_same.held
    found: dict[str, ColumnChain] = {}
    for node, source in part.sources():
        chain = _chain(topology, part, node, app_id)
        if chain is not None:
            found.update({topology.topic_name(topic, app_id): chain for topic in source.topics})
    return found


def _chain(topology: Topology, part: Subtopology, node: Node, app_id: str) -> ColumnChain | None:
    source = node.operator
    assert isinstance(source, Source)
    if source.timestamp_of is not None:
        return None
    values: list[Part] = [Name("value")]
    if source.value == NamedSerde("json"):
        values.insert(0, Row("value"))
    for value in values:
        writer = _LoopWriter(topology, source, app_id, value)
        try:
            return writer.chain(part, node)
        except (NeedsWhole, UnfitNames):
            continue
        except NotByColumns:
            return None
    return None


class _LoopWriter:
    """Writes the code of one chain."""

    __slots__ = ("_app_id", "_code", "_first", "_sinks", "_source", "_topology")

    def __init__(self, topology: Topology, source: Source, app_id: str, value: Part) -> None:
        self._topology = topology
        self._source = source
        self._app_id = app_id
        self._code = Code(depth=2)
        self._first = Scope(Name("key"), value)
        self._sinks: list[SinkColumns] = []

    def chain(self, part: Subtopology, node: Node) -> ColumnChain:
        ChainWriter(part, self._code, self._collect).write_below(node, self._first)
        value = self._first.value
        row = row_type(value.attributes) if isinstance(value, Row) else None
        uses = [self._code.mentions(name) for name in ("key", "value")]
        run = _loop(self._code, len(self._sinks))
        return ColumnChain(self._source, run, tuple(self._sinks), uses[0], uses[1], row)

    def _collect(self, code: Code, scope: Scope, leaf: Node) -> None:
        sink = self._sink(leaf, scope)
        number = len(self._sinks)
        self._sinks.append(sink)
        code.line(f"rows_{number}.append(row)")
        if not sink.keeps_key:
            code.line(f"keys_{number}.append({whole(code, scope, scope.key).text})")
        if not sink.keeps_value:
            code.line(f"values_{number}.append({self._value(scope, sink)})")

    def _sink(self, leaf: Node, scope: Scope) -> SinkColumns:
        sink, source = leaf.operator, self._source
        if not isinstance(sink, Sink) or not _is_plain(sink):
            raise NotByColumns
        assert isinstance(sink.topic, str)
        topic = self._topology.topic_name(sink.topic, self._app_id)
        if any(other.topic == topic for other in self._sinks):
            raise NotByColumns  # records of both would have to take turns
        return SinkColumns(
            topic,
            sink.key,
            sink.value,
            keeps_key=scope.key is self._first.key and sink.key == source.key in _UNCHANGED,
            keeps_value=scope.value is self._first.value
            and sink.value == source.value in _UNCHANGED,
        )

    def _value(self, scope: Scope, sink: SinkColumns) -> str:
        """A name or a call; what is only written as JSON need not be a dict."""
        value = scope.value
        if not isinstance(value, Made) or sink.value != NamedSerde("json"):
            return whole(self._code, scope, value).text
        texts = [whole(self._code, scope, part).text for part in value.fields.values()]
        names = {name: f"f{number}" for number, name in enumerate(value.fields)}
        return f"{self._code.constant(row_type(names))}({', '.join(texts)})"


def _is_plain(sink: Sink) -> bool:
    """Whether topic and partition follow from the key alone."""
    kinds = (NamedSerde, StructSerde, FunctionSerde)  # windowed keys are placed by a part of them
    return isinstance(sink.topic, str) and sink.partitioner is None and isinstance(sink.key, kinds)


def _loop(code: Code, sinks: int) -> Callable[..., list[Reached]]:
    lists = [f"rows_{number}, keys_{number}, values_{number}" for number in range(sinks)]
    head = [
        "def run(keys, values):",
        *(f"    {names} = [], [], []" for names in lists),
        "    for row, (key, value) in enumerate(zip(keys, values)):",
    ]
    tail = ["        continue", f"    return [{', '.join(f'({names})' for names in lists)}]"]
    made: Callable[..., list[Reached]] = code.function(head, tail, "run")
    return made


def _check(read: pyarrow.RecordBatch) -> None:
    first_ms = compute.min(read.column("timestamp")).as_py()
    if first_ms is not None and first_ms < 0:
        raise NotByColumns
    if compute.min(compute.list_value_length(read.column("headers"))).as_py() == 0:
        raise NotByColumns  # no headers are written as nothing, not as an empty list


def _seen(column: pyarrow.Array, serde: Serde, *, is_used: bool) -> Sequence[Any]:
    """Objects for the code to look at; a stand-in where it does not, once they are known valid."""
    if not is_used and serde in _UNCHANGED:
        if serde.name == "str":
            column.cast(pyarrow.string())
        if serde.name == "int":
            sizes = compute.min_max(compute.binary_length(column)).as_py()
            if any(size not in (None, _INT_BYTES) for size in sizes.values()):
                raise NotByColumns
        return range(len(column))
    if serde == NamedSerde("str"):
        texts: list[Any] = column.cast(pyarrow.string()).to_pylist()
        return texts
    decode = serde.deserializer()
    return [None if data is None else decode(data) for data in column.to_pylist()]


def _rows(
    read: pyarrow.RecordBatch, sink: SinkColumns, made: Reached, partitions: int | None
) -> pyarrow.RecordBatch:
    rows, keys, values = made
    numbers = None if len(rows) == len(read) else pyarrow.array(rows, pyarrow.int32())

    def kept(name: str) -> pyarrow.Array:
        return read.column(name) if numbers is None else read.column(name).take(numbers)

    key = kept("key") if sink.keeps_key else _serialised(keys, sink.key)
    value = kept("value") if sink.keeps_value else _serialised(values, sink.value)
    return pyarrow.RecordBatch.from_arrays(
        [key, value, kept("timestamp"), kept("headers"), _places(key, partitions)],
        names=["key", "value", "timestamp", "headers", "partition"],
    )


def _places(keys: pyarrow.Array, count: int | None) -> pyarrow.Array:
    if count is None:
        return pyarrow.nulls(len(keys), pyarrow.int32())
    placed = place_table(pyarrow.table({"key": keys}), count)
    if not keys.null_count:
        return placed
    return compute.if_else(keys.is_valid(), placed, pyarrow.scalar(None, pyarrow.int32()))


def _serialised(objects: list[Any], serde: Serde) -> pyarrow.Array:
    if serde == NamedSerde("json"):
        return pyarrow.array(_json(objects), pyarrow.binary())
    encode = serde.serializer()
    data = [None if one is None else encode(one) for one in objects]
    if not all(type(one) is bytes for one in data if one is not None):
        raise NotByColumns
    return pyarrow.array(data, pyarrow.binary())


def _json(objects: list[Any]) -> list[bytes | None]:
    """All of them in one go: JSON has no line break of its own."""
    there = [one for one in objects if one is not None]
    lines: list[bytes] = msgspec.json.Encoder().encode_lines(there).split(b"\n")[:-1]
    if len(lines) != len(there):
        raise NotByColumns  # an object with a way of its own to become JSON
    if len(there) == len(objects):
        return list(lines)
    following = iter(lines)
    return [None if one is None else next(following) for one in objects]
