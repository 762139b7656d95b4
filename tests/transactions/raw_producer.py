"""A transactional producer by hand, in either version of the protocol, and a reader to check it.

Every step is its own call, so that a test decides what comes between them. Lost connections are
opened anew and the request is sent again, as a real client does.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.errors import ErrorCode
from ottla.protocol.api import APIS, Api, ApiKey
from ottla.protocol.frames import decode_response, decode_response_header, encode_request
from ottla.protocol.message import Message
from ottla.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.protocol.plan import schema_of
from ottla.records.builder import BatchBuilder, ProducerStamp
from support.requests import Place
from support.wire import Connection

PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 0.005
GROUP, TRANSACTION = 0, 1
"""Kinds of keys that FindCoordinator knows."""

WORTH_ASKING_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)

Answer = TypeVar("Answer", bound=Message)
KeyValue = tuple[bytes | None, bytes | None]


class Refused(Exception):
    """The broker answered with an error that asking again does not cure."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code
        super().__init__(code.name)


class OutOfPatience(AssertionError):
    """The broker was not there, or told us to come back, for too long."""


class MessageConnection:
    """Messages of any version over one blocking connection, opened when first needed."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._connection: Connection | None = None
        self._correlation_id = 0

    def exchange(self, request: Message, version: int, answer: type[Answer]) -> Answer:
        """Send one request once; an OSError means that nobody knows whether it had an effect."""
        api = _api_of(request)
        try:
            received = memoryview(self.post(request, version).receive_frame())
        except OSError:
            self.close()
            raise
        correlation_id, position = decode_response_header(received, api, version)
        assert correlation_id == self._correlation_id, "answers are out of order"
        response = decode_response(api, version, received, position)
        assert isinstance(response, answer)
        return response

    def post(self, request: Message, version: int) -> Connection:
        """Send one request, and leave its answer to whoever wants it."""
        self._correlation_id += 1
        api = _api_of(request)
        frame = encode_request(api, version, self._correlation_id, "raw-producer", request)
        if self._connection is None:
            self._connection = Connection(self.bootstrap)
        self._connection.send_bytes(bytes(frame))
        return self._connection

    def insist(
        self,
        request: Message,
        version: int,
        answer: type[Answer],
        code_of: Callable[[Answer], int],
    ) -> Answer:
        """Send until there is an answer that will not change by asking again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        problem: object = None
        while time.monotonic() < deadline:
            try:
                response = self.exchange(request, version, answer)
            except OSError as error:
                problem = error
            else:
                code = ErrorCode(code_of(response))
                if code is ErrorCode.NONE:
                    return response
                if code not in WORTH_ASKING_AGAIN:
                    raise Refused(code)
                problem = code
            time.sleep(PAUSE_SECONDS)
        raise OutOfPatience(f"{type(request).__name__}: {problem!r}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """The versions of the requests that make up one version of the transaction protocol."""

    name: str
    produce: int
    end: int
    offsets: int
    adds_partitions: bool


FIRST = Dialect("first", produce=11, end=4, offsets=4, adds_partitions=True)
SECOND = Dialect("second", produce=12, end=5, offsets=5, adds_partitions=False)
ADD_PARTITIONS_VERSION, ADD_OFFSETS_VERSION, INIT_VERSION = 3, 3, 5
TWO_PHASE_INIT_VERSION = 6


@dataclass
class RawProducer:
    """A transactional producer. Copies with the same pair may write beside it, as tasks do."""

    bootstrap: str
    transactional_id: str
    dialect: Dialect = SECOND
    timeout_ms: int = 60_000
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[Place, int] = field(default_factory=dict)
    added: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.connection = MessageConnection(self.bootstrap)

    @property
    def pair(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    def init(
        self, *, two_phase: bool = False, keep_prepared: bool = False
    ) -> InitProducerIdResponse:
        """Take the transactional id over."""
        self._find_coordinator(self.transactional_id, TRANSACTION)
        request = InitProducerIdRequest(
            self.transactional_id,
            self.timeout_ms,
            enable2_pc=two_phase,
            keep_prepared_txn=keep_prepared,
        )
        version = TWO_PHASE_INIT_VERSION if two_phase or keep_prepared else INIT_VERSION
        response = self.connection.insist(
            request, version, InitProducerIdResponse, lambda answer: answer.error_code
        )
        self._go_on_with(response.producer_id, response.producer_epoch)
        return response

    def add(self, *places: Place) -> None:
        """Add partitions to the transaction, as the first version wants it beforehand."""
        topics: dict[str, list[int]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name, partitions) for name, partitions in topics.items()
            ],
        )
        self.connection.insist(
            request, ADD_PARTITIONS_VERSION, AddPartitionsToTxnResponse, _worst_addition
        )
        self.added.update(places)

    def write(self, place: Place, *values: bytes, key: bytes | None = None) -> int:
        """Write a batch in the transaction; returns the offset of its first record."""
        return self.write_records(place, [(key, value) for value in values])

    def write_records(self, place: Place, records: list[KeyValue]) -> int:
        if self.dialect.adds_partitions and place not in self.added:
            self.add(place)
        response = self.connection.insist(
            self.produce_request(place, records),
            self.dialect.produce,
            ProduceResponse,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )
        self.sequences[place] = self.sequences.get(place, 0) + len(records)
        return response.responses[0].partition_responses[0].base_offset

    def produce_request(self, place: Place, records: list[KeyValue]) -> ProduceRequest:
        """The request for the next batch of a partition."""
        builder = BatchBuilder()
        for key, value in records:
            builder.append(int(time.time() * 1000), key, value)
        stamp = ProducerStamp(
            self.producer_id, self.epoch, self.sequences.get(place, 0), is_transactional=True
        )
        data = PartitionProduceData(place[1], memoryview(builder.build(producer=stamp)))
        topic = TopicProduceData(name=place[0], partition_data=[data])
        return ProduceRequest(self.transactional_id, -1, 10_000, [topic])

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit a group's offsets as part of the transaction."""
        self._find_coordinator(group, GROUP)
        if self.dialect.adds_partitions:
            self.connection.insist(
                AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group),
                ADD_OFFSETS_VERSION,
                AddOffsetsToTxnResponse,
                lambda answer: answer.error_code,
            )
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            entry = TxnOffsetCommitRequestPartition(partition, offset)
            topics.setdefault(topic, []).append(entry)
        request = TxnOffsetCommitRequest(
            self.transactional_id,
            group,
            self.producer_id,
            self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name, partitions=p) for name, p in topics.items()],
        )
        self.connection.insist(
            request, self.dialect.offsets, TxnOffsetCommitResponse, _worst_offset_commit
        )

    def commit(self) -> None:
        self._end(committed=True)

    def abort(self) -> None:
        self._end(committed=False)

    def end_request(self, *, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, committed)

    def state(self) -> str:
        """What the coordinator says of the transactional id."""
        return transaction_state(self.connection, self.transactional_id)

    def close(self) -> None:
        self.connection.close()

    def _end(self, *, committed: bool) -> None:
        response = self.connection.insist(
            self.end_request(committed=committed),
            self.dialect.end,
            EndTxnResponse,
            lambda answer: answer.error_code,
        )
        if self.dialect is SECOND:
            self._go_on_with(response.producer_id, response.producer_epoch)
        self.added.clear()

    def _go_on_with(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self.sequences.clear()
        self.added.clear()

    def _find_coordinator(self, key: str, key_type: int) -> None:
        self.connection.insist(
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]),
            4,
            FindCoordinatorResponse,
            lambda answer: answer.coordinators[0].error_code,
        )


def _api_of(request: Message) -> Api:
    return APIS[ApiKey(schema_of(type(request)).api_key)]


def transaction_state(connection: MessageConnection, transactional_id: str) -> str:
    """The coordinator's word for where a transactional id stands."""
    response = connection.insist(
        DescribeTransactionsRequest([transactional_id]),
        0,
        DescribeTransactionsResponse,
        lambda answer: answer.transaction_states[0].error_code,
    )
    return response.transaction_states[0].transaction_state


def _worst_addition(answer: AddPartitionsToTxnResponse) -> int:
    codes = [
        partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
    return next(filter(None, codes), 0)


def _worst_offset_commit(answer: TxnOffsetCommitResponse) -> int:
    codes = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    return next(filter(None, codes), 0)
