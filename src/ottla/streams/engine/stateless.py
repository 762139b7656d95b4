"""Nodes that look at one record and forget it, where `fusing.py` has none, and sinks."""

from __future__ import annotations

from typing import Any

from ottla.streams.engine.changes import Change
from ottla.streams.engine.functions import of_key_and_value, of_value
from ottla.streams.engine.records import Headers, OutputRecord
from ottla.streams.engine.wiring import Forward, Wiring
from ottla.streams.failures import TopologyError
from ottla.streams.operators import (
    FlatMap,
    FlatMapValues,
    Map,
    PassThrough,
    Peek,
    Sink,
    TableToStream,
)
from ottla.streams.serdes import Encode, Serde


def map_records(operator: Map, wiring: Wiring) -> Forward:
    mapper, forward = of_key_and_value(operator.mapper), wiring.forward

    def mapped(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        new_key, new_value = mapper(key, value)
        forward(new_key, new_value, timestamp_ms, headers)

    return mapped


def flat_map(operator: FlatMap, wiring: Wiring) -> Forward:
    mapper, forward = of_key_and_value(operator.mapper), wiring.forward

    def mapped(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        for new_key, new_value in mapper(key, value):
            forward(new_key, new_value, timestamp_ms, headers)

    return mapped


def flat_map_values(operator: FlatMapValues, wiring: Wiring) -> Forward:
    mapper, forward = of_value(operator.mapper, operator.with_key), wiring.forward

    def mapped(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        for new_value in mapper(key, value):
            forward(key, new_value, timestamp_ms, headers)

    return mapped


def peek(operator: Peek, wiring: Wiring) -> Forward:
    action, forward = operator.action, wiring.forward

    def peeked(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        action(key, value)
        forward(key, value, timestamp_ms, headers)

    return peeked


def pass_through(_: PassThrough, wiring: Wiring) -> Forward:
    return wiring.forward


def table_to_stream(_: TableToStream, wiring: Wiring) -> Forward:
    forward = wiring.forward

    def told(key: Any, change: Change, timestamp_ms: int, headers: Headers) -> None:
        forward(key, change[0], timestamp_ms, headers)

    return told


def sink(operator: Sink, wiring: Wiring) -> Forward:
    encode_key, encode_value = _encoders(operator, wiring)
    by_key = operator.key.partitioner()
    if operator.partitioner is not None or not isinstance(operator.topic, str):
        return _choosing_sink(operator, wiring)
    topic = wiring.topology.topic_name(operator.topic, wiring.app_id)
    write = wiring.state.outputs.append
    whole_key = by_key == operator.key.serializer()

    def written(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        key_bytes = None if key is None else encode_key(key)
        partition_key = key_bytes if whole_key or key is None else by_key(key)
        value_bytes = None if value is None else encode_value(value)
        write(OutputRecord(topic, key_bytes, value_bytes, timestamp_ms, headers, partition_key))

    return written


def _encoders(operator: Sink, wiring: Wiring) -> tuple[Encode, Encode]:
    """The sink's serializers; what they cannot write they say with the name of the sink."""

    def explaining(serde: Serde, part: str) -> Encode:
        encode = serde.serializer()

        def encoded(value: Any) -> bytes:
            try:
                return encode(value)
            except Exception as error:
                raise TypeError(
                    f"{wiring.node.name} cannot write {type(value).__name__} {value!r:.60} with the"
                    f" serde {serde.name!r}; name another one with {part}="
                ) from error

        return encoded

    return explaining(operator.key, "key"), explaining(operator.value, "value")


def _choosing_sink(operator: Sink, wiring: Wiring) -> Forward:
    """A sink that chooses the topic, or the partition, for each record."""
    encode_key, encode_value = _encoders(operator, wiring)
    by_key, choose = operator.key.partitioner(), operator.partitioner
    write = wiring.state.outputs.append

    def written(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        named = operator.topic if isinstance(operator.topic, str) else operator.topic(key, value)
        topic = wiring.topology.topic_name(named, wiring.app_id)
        key_bytes = None if key is None else encode_key(key)
        partition_key = None if key is None else by_key(key)
        value_bytes = None if value is None else encode_value(value)
        partition = None
        if choose is not None:
            count = wiring.partition_counts.get(topic)
            if count is None:
                raise TopologyError(f"nobody said how many partitions {topic!r} has")
            partition = choose(key, value, count)
        write(
            OutputRecord(
                topic, key_bytes, value_bytes, timestamp_ms, headers, partition_key, partition
            )
        )

    return written
