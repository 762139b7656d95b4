"""Produce: append each partition's records, and answer when they are as safe as was asked.

Everything is appended before the first await, so the order of requests on a connection is the
order in the log. Where records expand so far that a thread has to look at them first, later Produce
requests of that connection wait for it, one batch at a time: none overtakes another.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from struct import Struct
from typing import Final

from ottla.broker.partition import Partition
from ottla.broker.partitions import Partitions
from ottla.broker.request import Outcome, Parked, RequestContext, settled
from ottla.broker.transaction_guard import Codes, TransactionGuard, enrolment
from ottla.cluster.image import INTERNAL_TOPICS
from ottla.errors import (
    ErrorCode,
    ExpandsTooFar,
    InvalidTopic,
    OttlaError,
    ProtocolError,
    RecordsWithoutKey,
    RequestFailed,
    TimedOut,
    UnsupportedCompression,
)
from ottla.model.ids import Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from ottla.protocol.message import Message
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    MAGIC,
    MAGIC_POSITION,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
)
from ottla.records.compression import COMPRESSION_BITS, Compression
from ottla.storage.admission import checked
from ottla.storage.producer_state import Origin

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
FIRST_VERSION_TOLD_TO_ABORT: Final = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_ZSTD: Final = 7
ADMIN_CLIENT_ID: Final = "__admin_client"
"""Who names itself so may write to internal topics, as with Apache Kafka."""

log = logging.getLogger(__name__)

Uncommitted = tuple[Partition, Offset, PartitionProduceResponse]
Slow = tuple[Partition, PartitionProduceData, PartitionProduceResponse]
THREADS: Final = 2
"""How many batches are looked at at once, of all connections together."""
WAITING_BYTES_MAX: Final = 32 * 1024 * 1024
"""What one connection may have waiting for that; the rest is to be sent again later."""

_producer_of = Struct(">qh").unpack_from


class _Appending:
    """What holds for all partitions of one request, and what is to be waited for."""

    __slots__ = (
        "acks",
        "barred",
        "may_write_internal",
        "slow",
        "topics",
        "transactional_id",
        "uncommitted",
        "version",
    )

    def __init__(self, request: ProduceRequest, context: RequestContext, barred: Codes) -> None:
        self.acks: int = request.acks
        self.version = context.version
        self.may_write_internal = context.client_id == ADMIN_CLIENT_ID
        self.transactional_id: str | None = request.transactional_id
        self.barred = barred
        self.uncommitted: list[Uncommitted] = []
        self.topics: list[TopicProduceResponse] = []
        self.slow: list[Slow] = []
        """What a thread has to look at before it is appended, and the answers to fill in."""

    def check(self, partition: Partition, records: memoryview) -> None:
        """Refuses records that this request may not append, whatever the log says to them."""
        if self.version < FIRST_VERSION_WITH_ZSTD:
            _refuse_zstd(records)
        if self.acks == ACKS_ALL:
            partition.check_in_sync()
        else:
            partition.check_leads_for_certain()
        if self.transactional_id is None:
            if _transactional_producer(records) is not None:
                raise RequestFailed(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "transactional records need a transactional id",
                )
        elif (code := self.barred.get(partition.id)) is not None:
            raise RequestFailed(code)


class ProduceHandler:
    """Appends records."""

    def __init__(self, partitions: Partitions, guard: TransactionGuard) -> None:
        self._partitions = partitions
        self._guard = guard
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ottla-records")
        self._slow: dict[int, asyncio.Task[_Appending]] = {}
        """Of each connection that has such records in work, the last of its requests.

        By the identity of its Peer, which the task keeps: compiled, a Peer cannot be a key.
        """
        self._waiting_bytes: dict[int, int] = {}

    def handle(self, request: ProduceRequest, context: RequestContext) -> Outcome:
        if not ACKS_ALL <= request.acks <= ACKS_LEADER:
            return self.refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
        version = context.version
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            for topic in request.topic_data:
                topic.name = self._name(topic.topic_id)
        if self._slow and id(context.peer) in self._slow:
            return self._append_slowly(request, context, None)
        if request.transactional_id is not None:
            return self._append_in_transaction(request, context)
        appending = _Appending(request, context, {})
        self._append_all(request, appending)
        if appending.slow:
            return self._append_slowly(request, context, appending)
        return _outcome(request, appending)

    async def _append_in_transaction(
        self, request: ProduceRequest, context: RequestContext
    ) -> Message | None:
        barred = await self._bar(request, context.version)
        appending = _Appending(request, context, barred)
        self._append_all(request, appending)
        if appending.slow:
            return await settled(self._append_slowly(request, context, appending))
        return await settled(_outcome(request, appending))

    def _append_slowly(
        self, request: ProduceRequest, context: RequestContext, begun: _Appending | None
    ) -> Outcome:
        """In a task of its own, which the next request of the connection waits for.

        It goes on though the client may leave: who sent it before it left has sent it.
        """
        size_bytes = _keep_records(request)
        peer = id(context.peer)
        if self._waiting_bytes.get(peer, 0) + size_bytes > WAITING_BYTES_MAX:
            return self.refuse(request, ErrorCode.REQUEST_TIMED_OUT)
        before = self._slow.get(peer)
        work = self._append_in_turn(request, context, begun, before)
        task = asyncio.get_running_loop().create_task(work)
        self._slow[peer] = task
        self._waiting_bytes[peer] = self._waiting_bytes.get(peer, 0) + size_bytes
        task.add_done_callback(lambda done: self._end_turn(peer, done, size_bytes))
        return _answer_of(request, task)

    def _end_turn(self, peer: int, task: asyncio.Task[_Appending], size_bytes: int) -> None:
        self._waiting_bytes[peer] -= size_bytes
        if self._slow.get(peer) is task:
            del self._slow[peer], self._waiting_bytes[peer]
        if not task.cancelled():
            task.exception()  # whoever waits for it has it too; nobody may

    async def _append_in_turn(
        self,
        request: ProduceRequest,
        context: RequestContext,
        begun: _Appending | None,
        before: asyncio.Task[_Appending] | None,
    ) -> _Appending:
        if before is not None:
            await asyncio.wait([before])
        appending = begun
        if appending is None:
            barred: Codes = {}
            if request.transactional_id is not None:
                barred = await self._bar(request, context.version)
            appending = _Appending(request, context, barred)
            self._append_all(request, appending)
        loop = asyncio.get_running_loop()
        for partition, data, answer in appending.slow:
            try:
                records = data.records
                assert records is not None, "it was found to expand too far"
                ready = await loop.run_in_executor(
                    self._threads, checked, records, partition.log.settings
                )
                appending.check(partition, records)
                appended = partition.append(ready, origin=Origin.CHECKED_CLIENT)
            except OttlaError as error:
                _fail(answer, error)
                continue
            answer.base_offset = appended.base_offset
            answer.log_append_time_ms = appended.append_time_ms
            answer.log_start_offset = appended.start_offset
            if not partition.is_committed(appended.end_offset):
                appending.uncommitted.append((partition, appended.end_offset, answer))
        return appending

    def _append_all(self, request: ProduceRequest, appending: _Appending) -> None:
        appending.topics = [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [self._append(topic.name, data, appending) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]

    def refuse(self, request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
        return ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    [
                        PartitionProduceResponse(data.index, code, -1, error_message=code.sentence)
                        for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    def _name(self, topic_id: bytes) -> str:
        try:
            return self._partitions.name_of(TopicId(topic_id))
        except RequestFailed:
            return ""

    async def _bar(self, request: ProduceRequest, version: int) -> Codes:
        """The partitions that the request's transaction may not write to."""
        producer: tuple[ProducerId, ProducerEpoch] | None = None
        partitions = []
        for topic in request.topic_data:
            for data in topic.partition_data:
                found = _transactional_producer(data.records)
                if found is not None and topic.name:
                    if producer not in (None, found):
                        raise RequestFailed(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
                    producer = found
                    partitions.append(TopicPartition(topic.name, data.index))
        how = enrolment(
            version,
            abortable_from=FIRST_VERSION_TOLD_TO_ABORT,
            implied_from=FIRST_VERSION_THAT_ADDS_PARTITIONS,
        )
        if producer is None or not self._guard.must_ask(producer, partitions, how):
            return {}
        _keep_records(request)
        return await self._guard.admit(request.transactional_id or "", producer, partitions, how)

    def _append(
        self, topic: str, data: PartitionProduceData, appending: _Appending
    ) -> PartitionProduceResponse:
        try:
            if not topic:
                raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_ID)
            partition = self._partitions.find(topic, data.index)
            if topic in INTERNAL_TOPICS and not appending.may_write_internal:
                raise InvalidTopic(f"only brokers write to the internal topic {topic}")
            records = data.records
            if not records:
                raise RequestFailed(ErrorCode.INVALID_RECORD, "there are no records to append")
            appending.check(partition, records)
            appended = partition.append(records)
        except ExpandsTooFar:
            answer = PartitionProduceResponse(data.index, 0, -1)
            appending.slow.append((partition, data, answer))
            return answer
        except OttlaError as error:
            return _failure(data.index, error)
        answer = PartitionProduceResponse(
            data.index, 0, appended.base_offset, appended.append_time_ms, appended.start_offset
        )
        if not partition.is_committed(appended.end_offset):
            appending.uncommitted.append((partition, appended.end_offset, answer))
        return answer


def _outcome(request: ProduceRequest, appending: _Appending) -> Outcome:
    response = ProduceResponse(appending.topics)
    if appending.acks == ACKS_NONE:
        _cut_off_on_error(response)
        return None
    if appending.acks == ACKS_ALL and appending.uncommitted:
        return Parked(_committed(response, appending.uncommitted, request.timeout_ms))
    return response


async def _answer_of(request: ProduceRequest, task: asyncio.Task[_Appending]) -> Message | None:
    return await settled(_outcome(request, await asyncio.shield(task)))


def _failure(index: int, error: OttlaError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(index, error.code, -1)
    _fail(answer, error)
    return answer


def _fail(answer: PartitionProduceResponse, error: OttlaError) -> None:
    answer.error_code = error.code
    answer.error_message = str(error)
    if isinstance(error, RecordsWithoutKey):
        answer.record_errors = [
            BatchIndexAndErrorMessage(each, "a record of a compacted topic needs a key")
            for each in error.indexes
        ]
    elif error.code is ErrorCode.INVALID_RECORD:
        answer.record_errors = [BatchIndexAndErrorMessage(0, str(error))]


def _keep_records(request: ProduceRequest) -> int:
    """Makes the records outlive the first wait: after it their frame's buffer is another's.

    Returns how many bytes they are.
    """
    size_bytes = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))
                size_bytes += len(data.records)
    return size_bytes


def _transactional_producer(
    records: memoryview | None,
) -> tuple[ProducerId, ProducerEpoch] | None:
    """Whose transaction the first batch is of; None for records outside of any."""
    if records is None or len(records) < HEADER_BYTES or records[MAGIC_POSITION] != MAGIC:
        return None
    if not records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_BIT:
        return None
    producer_id, producer_epoch = _producer_of(records, PRODUCER_ID_POSITION)
    return ProducerId(producer_id), ProducerEpoch(producer_epoch)


def _refuse_zstd(records: memoryview) -> None:
    """Clients that old would not be able to read back what they send."""
    low_attributes = ATTRIBUTES_POSITION + 1
    if len(records) <= low_attributes or records[MAGIC_POSITION] != MAGIC:
        return
    if records[low_attributes] & COMPRESSION_BITS == Compression.ZSTD:
        raise UnsupportedCompression("zstd needs version 7 of Produce; upgrade the client")


async def _committed(
    response: ProduceResponse, uncommitted: list[Uncommitted], timeout_ms: int
) -> Message | None:
    """Waits for all; a partition that fails or is late gets its error in its own answer."""
    deadline = asyncio.get_running_loop().time() + max(0, timeout_ms) / 1000
    # All waits begin now: what befalls one partition while another is waited for must be heard.
    waits = [
        (partition, partition.committed(end_offset, deadline), answer)
        for partition, end_offset, answer in uncommitted
    ]
    try:
        for partition, committed, answer in waits:
            try:
                await committed
                partition.check_still_in_sync()
            except TimedOut:
                answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            except OttlaError as error:
                answer.error_code = error.code
                answer.error_message = str(error)
    finally:
        for _, committed, _ in waits:
            committed.cancel()
    return response


def _cut_off_on_error(response: ProduceResponse) -> None:
    """With acks=0 there is no answer to put an error in: closing the connection is the answer."""
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                raise ProtocolError(
                    f"an acks=0 append to {topic.name}-{answer.index} failed:"
                    f" {answer.error_message}"
                )
