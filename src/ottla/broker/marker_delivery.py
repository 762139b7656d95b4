"""Takes the markers of ended transactions to the leaders of their partitions, at any length.

What goes to another broker is put together in one request at a time, with all that came up while
the one before was under way. What fails is tried again, with the leader that is known by then.

Invariants:
1. A partition is reported only when its marker is committed, or when the metadata store says that
   its topic is gone. A broker's own picture may lack a topic that is merely new.
2. A shard that was dropped sends nothing any more; its successor begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from ottla.broker.cluster_view import ClusterView
from ottla.broker.transaction_markers import MarkerWriter
from ottla.cluster import layout
from ottla.cluster.image import NO_BROKER
from ottla.cluster.store import MetadataStore
from ottla.coordination.transaction.decision import WriteMarkers
from ottla.errors import ErrorCode, OttlaError, ProtocolError
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.message import Message
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

RETRY_SECONDS: Final = 0.5
ERRANDS_PER_REQUEST_MAX: Final = 1_000

log = logging.getLogger(__name__)


class Neighbours(Protocol):
    """Asks other brokers over the wire."""

    async def ask(
        self, broker_id: BrokerId, request: Message, *, version: int | None = None
    ) -> Message: ...


class MarkerOwner(Protocol):
    """Whoever decided how a transaction ends, and waits for its markers."""

    @property
    def is_waiting(self) -> bool: ...

    def written(self, markers: WriteMarkers, partitions: Iterable[TopicPartition]) -> None: ...


class Errand(msgspec.Struct, frozen=True, eq=False):
    """One marker for one partition."""

    partition: TopicPartition
    markers: WriteMarkers
    owner: MarkerOwner


class MarkerDelivery:
    """Brings markers to their partitions, on this broker and on others."""

    def __init__(
        self,
        writer: MarkerWriter,
        view: ClusterView,
        neighbours: Neighbours,
        store: MetadataStore,
    ) -> None:
        self._writer = writer
        self._view = view
        self._neighbours = neighbours
        self._store = store
        self._waiting: dict[BrokerId, list[Errand]] = {}
        """For each broker that is being asked, what to ask next."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, markers: WriteMarkers, owner: MarkerOwner) -> None:
        """Ends the transaction in all its partitions, and tells the owner of each."""
        self._send(Errand(partition, markers, owner) for partition in markers.partitions)

    def stop(self) -> None:
        """Leaves what is not written to the next leader, or the next start."""
        for task in self._tasks:
            task.cancel()

    def _send(self, errands: Iterable[Errand]) -> None:
        """Sends each to where its partition is led now."""
        leaders: dict[BrokerId | None, list[Errand]] = defaultdict(list)
        for errand in errands:
            if errand.owner.is_waiting:
                leaders[self._leader(errand.partition)].append(errand)
        for leader, sent in leaders.items():
            if leader is None:
                self._start(self._look_for(sent))
            elif leader == NO_BROKER:
                self._settle(dict.fromkeys(sent, ErrorCode.LEADER_NOT_AVAILABLE))
            elif leader == self._view.broker_id:
                self._write_here(sent)
            elif leader in self._waiting:
                self._waiting[leader] += sent
            else:
                self._waiting[leader] = sent
                self._start(self._write_there(leader))

    def _leader(self, partition: TopicPartition) -> BrokerId | None:
        """The partition's leader; None where there is no such partition."""
        image = self._view.image.partition(partition.topic, partition.partition)
        return None if image is None else image.leader

    def _start(self, running: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(running)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_for(self, errands: Sequence[Errand]) -> None:
        """Partitions that this broker does not know: gone, or too new to be known here."""
        codes = {}
        for errand in errands:
            try:
                node = await self._store.get(layout.topic_path(errand.partition.topic))
            except OttlaError as error:
                codes[errand] = error.code
            else:
                is_gone = node is None or self._is_out_of_range(errand.partition)
                codes[errand] = ErrorCode.NONE if is_gone else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._settle(codes)

    def _is_out_of_range(self, partition: TopicPartition) -> bool:
        """Whether the topic was made anew, with fewer partitions."""
        topic = self._view.image.topics.get(partition.topic)
        return topic is not None and partition.partition >= len(topic.partitions)

    def _write_here(self, errands: Sequence[Errand]) -> None:
        """At once: the producer's next transaction waits for it."""
        codes = {}
        for errand in errands:
            try:
                committed = self._writer.begin(errand.partition, errand.markers)
            except OttlaError as error:
                codes[errand] = error.code
                continue
            if committed is None:
                codes[errand] = ErrorCode.NONE
            else:
                self._start(self._wait(errand, committed))
        self._settle(codes)

    async def _wait(self, errand: Errand, committed: asyncio.Future[None]) -> None:
        try:
            await committed
        except OttlaError as error:
            self._settle({errand: error.code})
        else:
            self._settle({errand: ErrorCode.NONE})

    async def _write_there(self, broker: BrokerId) -> None:
        """Asks a broker for as long as there is something to ask of it."""
        while waiting := self._waiting[broker]:
            asked, self._waiting[broker] = (
                waiting[:ERRANDS_PER_REQUEST_MAX],
                waiting[ERRANDS_PER_REQUEST_MAX:],
            )
            try:
                codes = await self._ask(broker, asked)
            except OttlaError as error:
                log.warning("broker %d could not be asked to write markers: %s", broker, error)
                codes = dict.fromkeys(asked, error.code)
            self._settle(codes)
        del self._waiting[broker]

    async def _ask(self, broker: BrokerId, errands: Sequence[Errand]) -> dict[Errand, ErrorCode]:
        endings = _by_ending(errands)
        request = WriteTxnMarkersRequest([_wanted(group) for group in endings])
        response = await self._neighbours.ask(broker, request)
        if not isinstance(response, WriteTxnMarkersResponse):
            raise ProtocolError(f"broker {broker} answered with {type(response).__name__}")
        codes = {}
        for group, result in zip(endings, response.markers, strict=False):
            told = {
                TopicPartition(topic.name, each.partition_index): each.error_code
                for topic in result.topics
                for each in topic.partitions
            }
            for errand in group:
                codes[errand] = ErrorCode.of(told.get(errand.partition, _UNTOLD))
        return {errand: codes.get(errand, _UNTOLD) for errand in errands}

    def _settle(self, codes: Mapping[Errand, ErrorCode]) -> None:
        """Reports what is done, and after a while tries the rest again."""
        codes = {errand: _outcome(errand, code) for errand, code in codes.items()}
        for group in _by_ending(errand for errand, code in codes.items() if not code):
            owner, markers = group[0].owner, group[0].markers
            if owner.is_waiting:
                owner.written(markers, [errand.partition for errand in group])
        left = []
        for errand, code in codes.items():
            if code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                log.warning("%s: a newer coordinator has taken over", errand.partition)
            elif code:
                log.info("a marker for %s was not written: %s", errand.partition, code.name)
                left.append(errand)
        if left:
            self._start(self._send_again(left))

    async def _send_again(self, errands: Sequence[Errand]) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        self._send(errands)


_UNTOLD: Final = ErrorCode.UNKNOWN_SERVER_ERROR


def _outcome(errand: Errand, code: ErrorCode) -> ErrorCode:
    """What an answer means: where a later epoch was seen, the marker was written long ago."""
    is_past = code is ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NONE if is_past and errand.markers.transaction_version >= 2 else code


def _by_ending(errands: Iterable[Errand]) -> list[list[Errand]]:
    """Together what belongs to one ending of one shard."""
    groups: dict[tuple[int, WriteMarkers], list[Errand]] = defaultdict(list)
    for errand in errands:
        groups[id(errand.owner), errand.markers].append(errand)
    return list(groups.values())


def _wanted(errands: Sequence[Errand]) -> WritableTxnMarker:
    markers = errands[0].markers
    topics: dict[str, list[int]] = defaultdict(list)
    for errand in errands:
        topics[errand.partition.topic].append(errand.partition.partition)
    return WritableTxnMarker(
        markers.producer_id,
        markers.producer_epoch,
        markers.is_commit,
        [WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
        markers.coordinator_epoch,
        markers.transaction_version,
    )
