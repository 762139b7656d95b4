"""Fetch: hand out runs of segment files, waiting a while where there is too little to hand out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ottla.broker.fetch_sessions import Fetch, FetchSession, FetchSessions, FetchTarget, follower_of
from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.replica_reads import ReplicaReads
from ottla.broker.request import Outcome, Parked, RequestContext
from ottla.broker.resting import Rest, may_rest
from ottla.broker.watch import DataWatch
from ottla.errors import ErrorCode, OffsetOutOfRange, OttlaError
from ottla.model.clock import Clock
from ottla.model.file_region import FileRegion
from ottla.model.ids import NO_LEADER_EPOCH, BrokerId, LeaderEpoch, Offset, TopicId
from ottla.protocol.message import Message
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.records.legacy import downconvert

FIRST_VERSION_WITH_V1_MESSAGES: Final = 2
FIRST_VERSION_WITH_SOFT_LIMIT: Final = 3
FIRST_VERSION_WITH_BATCHES: Final = 4
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
READ_COMMITTED: Final = 1
NO_REPLICA: Final = -1
WAIT_MS_MAX: Final = 600_000
"""No client is kept waiting longer, whatever it asks for."""


class _Reader:
    """Who asks."""

    __slots__ = ("committed_only", "follower", "rack", "version")

    def __init__(self, request: FetchRequest, version: int) -> None:
        self.follower = follower_of(request)
        """The broker that asks in order to replicate; None for a consumer."""
        self.rack: str = request.rack_id
        self.committed_only: bool = request.isolation_level == READ_COMMITTED
        self.version = version


class _Round:
    """One pass over the partitions of a request."""

    __slots__ = ("data", "has_watermarks", "must_answer", "size_bytes")

    def __init__(self) -> None:
        self.data: list[tuple[FetchTarget, PartitionData]] = []
        self.size_bytes = 0
        self.must_answer = False
        self.has_watermarks = False
        """Whether a follower does not know of a high watermark yet."""


class FetchHandler:
    """Reads records."""

    def __init__(
        self,
        partitions: Partitions,
        sessions: FetchSessions,
        replica_reads: ReplicaReads,
        clock: Clock,
        bytes_max: int,
    ) -> None:
        self._partitions = partitions
        self._sessions = sessions
        self._replica_reads = replica_reads
        self._clock = clock
        self._bytes_max = bytes_max

    def handle(self, request: FetchRequest, context: RequestContext) -> Outcome:
        uses_ids = context.version >= FIRST_VERSION_WITH_TOPIC_IDS
        fetch = self._sessions.begin(request, uses_ids=uses_ids, now_ms=self._clock.monotonic_ms())
        reader = _Reader(request, context.version)
        if reader.follower is not None:
            self._note_progress(fetch, reader.follower)
        reading = self._read_all(fetch, request, reader)
        if not self._is_enough(reading, request) and not fetch.is_empty:
            return Parked(self._answer_later(fetch, request, reader, reading))
        if reader.version < FIRST_VERSION_WITH_BATCHES:
            return Parked(self._answer_converted(fetch, reader, reading))
        return self._answer(fetch, reader, reading)

    async def _answer_later(
        self, fetch: Fetch, request: FetchRequest, reader: _Reader, reading: _Round
    ) -> Message | None:
        reading = await self._wait(fetch, request, reader, reading)
        if reader.version < FIRST_VERSION_WITH_BATCHES:
            return await self._answer_converted(fetch, reader, reading)
        return self._answer(fetch, reader, reading)

    async def _answer_converted(
        self, fetch: Fetch, reader: _Reader, reading: _Round
    ) -> Message | None:
        await _convert(reading.data, reader.version)
        return self._answer(fetch, reader, reading)

    def _answer(self, fetch: Fetch, reader: _Reader, reading: _Round) -> FetchResponse:
        if reader.follower is None:
            return _response(fetch, reading.data)
        self._note_sent(reading)
        response = _response(fetch, reading.data)
        if fetch.session is not None:
            self._let_rest(fetch.session, reader.follower, reading)
        return response

    def refuse(self, request: FetchRequest, code: ErrorCode) -> FetchResponse:
        """Session errors stand at the top; the partitions say it too, for versions without it."""
        return FetchResponse(
            error_code=code,
            responses=[
                FetchableTopicResponse(
                    topic.topic,
                    topic.topic_id,
                    [_failed(wanted.partition, code) for wanted in topic.partitions],
                )
                for topic in request.topics
            ],
        )

    def _note_progress(self, fetch: Fetch, follower: BrokerId) -> None:
        """A follower that asks for an offset has all before it."""
        for target in fetch.targets:
            try:
                partition = self._find(target)
                partition.check_leader_epoch(target.current_leader_epoch)
            except OttlaError:
                continue  # The reading will say so.
            if _diverging(partition, target) is None:
                partition.fetched_by(follower, Offset(target.fetch_offset))

    def _is_enough(self, reading: _Round, request: FetchRequest) -> bool:
        return (
            reading.must_answer
            or reading.size_bytes >= request.min_bytes
            or request.max_wait_ms <= 0
        )

    async def _wait(
        self, fetch: Fetch, request: FetchRequest, reader: _Reader, reading: _Round
    ) -> _Round:
        """Reads again each time enough may have come, until it has or the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(request.max_wait_ms, WAIT_MS_MAX) / 1000
        while not self._is_enough(reading, request):
            if reading.has_watermarks:
                soon = loop.time() + self._replica_reads.watermark_seconds_max
                deadline = min(deadline, soon)
            if (left := deadline - loop.time()) <= 0:
                break
            watch = DataWatch(loop, request.min_bytes - reading.size_bytes)
            watched = [found for target in fetch.targets if (found := self._found(target))]
            for partition in watched:
                partition.watch(watch)
            if fetch.session is not None:
                fetch.session.alarm = watch
            try:
                await watch.wait(left)
            finally:
                for partition in watched:
                    partition.unwatch(watch)
            reading = self._read_all(fetch, request, reader)
        return reading

    def _read_all(self, fetch: Fetch, request: FetchRequest, reader: _Reader) -> _Round:
        left = min(request.max_bytes, self._bytes_max)
        # Old versions promise never to exceed a limit; newer ones promise progress instead.
        at_least_one = reader.version >= FIRST_VERSION_WITH_SOFT_LIMIT
        is_told = reader.follower is not None and fetch.session is not None
        reading = _Round()
        for target in fetch.targets:
            data = self._read(
                target,
                min(left, target.bytes_max),
                reader,
                at_least_one=at_least_one and not reading.size_bytes,
            )
            size_bytes = len(data.records) if data.records else 0
            left = max(0, left - size_bytes)
            reading.size_bytes += size_bytes
            is_sent_away = data.preferred_read_replica != NO_REPLICA
            if data.error_code or data.diverging_epoch is not None or is_sent_away:
                reading.must_answer = True
            elif is_told and data.high_watermark > target.told_high_watermark:
                reading.has_watermarks = True
            reading.data.append((target, data))
        return reading

    def _read(
        self, target: FetchTarget, bytes_max: int, reader: _Reader, *, at_least_one: bool
    ) -> PartitionData:
        try:
            partition = self._find(target)
            self._check(partition, target, reader)
            log = partition.log
            diverging = _diverging(partition, target)
            region = None
            preferred = self._preferred(partition, target, reader) if reader.rack else None
            end: Offset | None
            if reader.follower is None:
                end = partition.readable_end(committed_only=reader.committed_only)
            else:
                end = self._follower_end(partition, reader.follower)
            if diverging is None and preferred is None and end is not None:
                region = log.read(
                    target.fetch_offset, bytes_max=bytes_max, end=end, at_least_one=at_least_one
                )
        except OffsetOutOfRange as error:
            # A follower that fell out of the log has to know where it begins.
            failed = _failed(target.partition, error.code)
            failed.log_start_offset = Offset(error.start)
            return failed
        except OttlaError as error:
            return _failed(target.partition, error.code)
        data = PartitionData(
            target.partition,
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.start_offset,
            diverging,
            records=region if region is not None else b"",
        )
        if preferred is not None:
            data.preferred_read_replica = preferred
        if reader.committed_only:
            data.aborted_transactions = _aborted(partition, target, region)
        else:
            data.aborted_transactions = None
        return data

    def _check(self, partition: Partition, target: FetchTarget, reader: _Reader) -> None:
        """Refuses to read for who should ask another broker."""
        if reader.rack and reader.follower is None and self._replica_reads.may_be_here:
            partition.check_replica_epoch(target.current_leader_epoch)
        else:
            partition.check_leader_epoch(target.current_leader_epoch)

    def _preferred(
        self, partition: Partition, target: FetchTarget, reader: _Reader
    ) -> BrokerId | None:
        if reader.follower is not None:
            return None
        return self._replica_reads.closer_replica(partition, reader.rack, target.fetch_offset)

    def _follower_end(self, partition: Partition, follower: BrokerId) -> Offset | None:
        """Where a follower's view of the log ends; None while it is held back."""
        if self._replica_reads.holds_back(partition, follower):
            return None
        return partition.log.end_offset

    def _note_sent(self, reading: _Round) -> None:
        for target, data in reading.data:
            if data.records and (partition := self._found(target)) is not None:
                self._replica_reads.sent(partition, len(data.records))

    def _let_rest(self, session: FetchSession, follower: BrokerId, reading: _Round) -> None:
        """Looks no more at partitions of which a follower has all, until something happens."""
        if session.is_closed:
            return
        for target, told in reading.data:
            partition = self._found(target)
            if partition is None or not session.is_awake(target):
                continue
            if may_rest(partition, follower, target, told):
                session.rest(Rest(partition, follower, session, target))

    def _find(self, target: FetchTarget) -> Partition:
        topic = target.topic
        if isinstance(topic, bytes):
            topic = self._partitions.name_of(TopicId(topic))
        return self._partitions.find(topic, target.partition)

    def _found(self, target: FetchTarget) -> Partition | None:
        try:
            return self._find(target)
        except OttlaError:
            return None


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(index, code, -1, -1, -1, aborted_transactions=None, records=b"")


def _diverging(partition: Partition, target: FetchTarget) -> EpochEndOffset | None:
    """Where the reader's history leaves ours, if it says what it read last and it does."""
    if target.last_fetched_epoch == NO_LEADER_EPOCH:
        return None
    ours = partition.log.epoch_end(LeaderEpoch(target.last_fetched_epoch))
    if ours is None:
        return None
    if ours.epoch < target.last_fetched_epoch or ours.end_offset < target.fetch_offset:
        return EpochEndOffset(ours.epoch, ours.end_offset)
    return None


def _aborted(
    partition: Partition, target: FetchTarget, region: FileRegion | None
) -> list[AbortedTransaction]:
    if region is None:
        return []
    end = partition.log.last_stable_offset
    return [
        AbortedTransaction(aborted.producer_id, aborted.first_offset)
        for aborted in partition.log.segments.aborted_transactions(Offset(target.fetch_offset), end)
    ]


async def _convert(data: Iterable[tuple[FetchTarget, PartitionData]], version: int) -> None:
    """Rewrites batches in the format that clients of old versions read."""
    magic = 1 if version >= FIRST_VERSION_WITH_V1_MESSAGES else 0
    loop = asyncio.get_running_loop()
    for target, answer in data:
        region = answer.records
        if not isinstance(region, FileRegion):
            continue
        try:
            answer.records = await loop.run_in_executor(
                None, _converted, region, magic, target.fetch_offset
            )
        except OttlaError as error:
            answer.error_code = error.code
            answer.records = b""


def _converted(region: FileRegion, magic: int, start: int) -> bytes:
    return downconvert(memoryview(region.read()), magic, start_offset=start)


def _response(fetch: Fetch, data: list[tuple[FetchTarget, PartitionData]]) -> FetchResponse:
    session = fetch.session
    topics: dict[str | bytes, FetchableTopicResponse] = {}
    for target, answer in data:
        if session is not None:
            is_news = target.is_news(answer)
            if fetch.is_incremental and not is_news:
                continue
            if answer.records:
                session.served(target)
        topic = topics.get(target.topic)
        if topic is None:
            topic = topics[target.topic] = _topic_response(target.topic)
        topic.partitions.append(answer)
    return FetchResponse(session_id=fetch.session_id, responses=list(topics.values()))


def _topic_response(topic: str | bytes) -> FetchableTopicResponse:
    if isinstance(topic, bytes):
        return FetchableTopicResponse(topic_id=topic)
    return FetchableTopicResponse(topic)
