"""A client of another language behind the face that the Python clients have, and some more.

Does not know how its program was built.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from compat.other_languages.program import Line, Program, Running
from support.clients.face import PLAINLY, Reading, Received, Sending, ToSend

EARLIEST, LATEST = -2, -1
UNTOLD = -1
"""The timestamp type, which most of these clients keep to themselves."""


@dataclass(frozen=True, slots=True)
class Described:
    """A group as the client's admin sees it: the partitions of each member by its client id."""

    state: str
    members: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Place:
    """A member's group, topic and way to share partitions."""

    group: str
    topic: str
    balancer: str = "range"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction to begin and end."""

    transactional_id: str
    is_committed: bool


class Member:
    """A member of a group at work; each record it hands out is committed before."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def wait_record(self) -> Received:
        line = self._running.next_line()
        assert line is not None, "the member has left"
        return _received(line)

    def leave(self) -> None:
        """Leave the group and return when that is done; no record may be left over."""
        self._running.end_input()
        left_over = self._running.next_line()
        assert left_over is None, left_over
        self._running.wait_ended()


@dataclass(frozen=True, slots=True)
class Traits:
    """What a client can do, and what it does in its own way.

    `release` is the Kafka that a client takes the broker for, where it must be told.
    """

    name: str
    program: str
    release: str = ""
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
    sends_null_headers: bool = True
    tells_empty_from_null: bool = True
    has_transactions: bool = True


class OtherClient:
    """A client that its program drives."""

    def __init__(self, traits: Traits, program: Program) -> None:
        self.name = traits.name
        self.codecs = traits.codecs
        self.sends_null_headers = traits.sends_null_headers
        self.tells_empty_from_null = traits.tells_empty_from_null
        self._release = traits.release
        self._program = program

    def create_topic(
        self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        self._do("create_topic", topic=topic, partitions=partitions, configs=dict(configs or {}))

    def topics(self) -> set[str]:
        return set(self._ask("list_topics")["topics"])

    def partitions_of(self, topic: str) -> list[Line]:
        """What the client's metadata tells of each partition, in order."""
        found = self._ask("describe_topic", topic=topic)["partitions"]
        return sorted(found, key=lambda one: one["partition"])

    def add_partitions(self, topic: str, *, total: int) -> None:
        self._do("add_partitions", topic=topic, partitions=total)

    def delete_topic(self, topic: str) -> None:
        self._do("delete_topic", topic=topic)

    def delete_records(self, topic: str, starts: Mapping[int, int]) -> None:
        self._do("delete_records", topic=topic, starts=dict(starts))

    def configs_of(self, topic: str) -> dict[str, str]:
        return self._ask("describe_configs", topic=topic)["configs"]

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._do("alter_configs", topic=topic, configs=dict(configs))

    def cluster(self) -> Line:
        return self._ask("describe_cluster")

    def produce(self, topic: str, records: Sequence[ToSend], how: Sending = PLAINLY) -> list[int]:
        return self._ask(
            "produce",
            topic=topic,
            records=[_line_of(record) for record in records],
            codec=how.codec or "none",
            idempotent=how.idempotent,
            request_bytes_max=how.request_bytes_max,
        )["offsets"]

    def consume(self, topic: str, starts: Mapping[int, int], how: Reading) -> list[Received]:
        with self.following(topic, starts, how) as records:
            return list(records)

    def consume_committed(self, topic: str, *, count: int) -> list[Received]:
        """The first records of partition 0 that no transaction withholds."""
        request = self._reading(topic, {0: 0}, Reading(count=count))
        lines = self._lines("consume", {**request, "committed_only": True})
        return [_received(line) for line in lines]

    @contextmanager
    def following(
        self, topic: str, starts: Mapping[int, int], how: Reading
    ) -> Iterator[Iterator[Received]]:
        """Records as they come, until there were as many as asked for."""
        with self._start("consume", self._reading(topic, starts, how)) as running:
            yield map(_received, iter(running.next_line, None))

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        request = {"topic": topic, "partition": partition, "timestamp_ms": timestamp_ms}
        found: int = self._ask("offset", **request)["offset"]
        return found if found >= 0 else None

    def offset_range(self, topic: str, partition: int) -> tuple[int, int]:
        start = self.offset_at(topic, partition, EARLIEST)
        end = self.offset_at(topic, partition, LATEST)
        assert start is not None
        assert end is not None
        return start, end

    def transact(self, topic: str, records: Sequence[ToSend], how: Transaction) -> None:
        """Produce the records in one transaction."""
        lines = [_line_of(record) for record in records]
        self._do("transaction", topic=topic, records=lines, **_transaction(how))

    def be_replaced(self, topic: str, transactional_id: str) -> None:
        """Write in a transaction, and again after another producer has taken the id over."""
        lines = [_line_of(ToSend(value)) for value in (b"before", b"after")]
        names = {"topic": topic, "transactional_id": transactional_id}
        self._do("be_replaced", **names, records=lines)

    def transform(self, source: Place, target: str, count: int, how: Transaction) -> None:
        """Copy records as a member of a group, with its offsets in the same transaction."""
        names = {"source": source.topic, "group": source.group, "topic": target, "count": count}
        self._do("transform", **names, **_transaction(how))

    @contextmanager
    def member(self, place: Place, client_id: str) -> Iterator[Member]:
        request = {"client_id": client_id, "group": place.group, "topic": place.topic}
        with self._start("member", {**request, "balancer": place.balancer}) as running:
            yield Member(running)

    def groups(self) -> set[str]:
        return set(self._ask("list_groups")["groups"])

    def describe_group(self, place: Place) -> Described:
        request = {"group": place.group, "topic": place.topic, "balancer": place.balancer}
        found = self._ask("describe_group", **request)
        members = {one["client_id"]: sorted(one["partitions"]) for one in found["members"]}
        assert len(members) == len(found["members"]), found
        return Described(found["state"], members)

    def group_offsets(self, place: Place) -> dict[int, int]:
        offsets = self._ask("group_offsets", group=place.group, topic=place.topic)["offsets"]
        return {int(partition): offset for partition, offset in offsets.items()}

    def set_group_offsets(self, place: Place, offsets: Mapping[int, int]) -> None:
        names = {"group": place.group, "topic": place.topic}
        self._do("set_group_offsets", **names, starts=dict(offsets))

    def delete_group(self, group: str) -> None:
        self._do("delete_group", group=group)

    def _reading(self, topic: str, starts: Mapping[int, int], how: Reading) -> dict[str, object]:
        return {
            "client_id": "reader",
            "topic": topic,
            "starts": dict(starts),
            "count": how.count,
            "wait_ms_max": how.wait_ms_max,
            "fetch_bytes_max": how.partition_bytes_max,
        }

    def _ask(self, command: str, **request: object) -> Any:
        (line,) = self._lines(command, {"client_id": "asking", **request})
        return line

    def _do(self, command: str, **request: object) -> None:
        assert self._lines(command, {"client_id": "doing", **request}) == []

    def _lines(self, command: str, request: Mapping[str, object]) -> list[Line]:
        return self._program.ask(command, {**request, "release": self._release})

    def _start(self, command: str, request: Mapping[str, object]) -> Running:
        return self._program.start(command, {**request, "release": self._release})


def _transaction(how: Transaction) -> dict[str, object]:
    return {"transactional_id": how.transactional_id, "commit": how.is_committed}


def _line_of(record: ToSend) -> dict[str, object]:
    return {
        "partition": record.partition,
        "key": _to_text(record.key),
        "value": _to_text(record.value),
        "headers": [{"key": key, "value": _to_text(value)} for key, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
    }


def _received(line: Line) -> Received:
    return Received(
        partition=line["partition"],
        offset=line["offset"],
        key=_to_bytes(line["key"]),
        value=_to_bytes(line["value"]),
        headers=tuple((header["key"], _to_bytes(header["value"])) for header in line["headers"]),
        timestamp_ms=line["timestamp_ms"],
        timestamp_type=UNTOLD,
    )


def _to_text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _to_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
