"""What is asked of both brokers about coordinators, producers and transactions."""

from compat.answers.dialogue import Dialogue
from ottla.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NO_SUCH_ID = bytes(15) + b"\7"
Producer = tuple[int, int]


def find_coordinator(dialogue: Dialogue, version: int) -> None:
    for label, key_type, key in (
        ("of a group", 0, dialogue.group),
        ("of a transactional id", 1, dialogue.id),
        ("of no group", 0, ""),
        ("of an unknown kind", 9, dialogue.group),
    ):
        if version < 1 and key_type:
            continue
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
        dialogue.ask(label, request, version, FindCoordinatorResponse)


def init(dialogue: Dialogue, transactional_id: str | None, **fields: int) -> InitProducerIdRequest:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def new_producer(dialogue: Dialogue) -> Producer:
    answer = dialogue.quietly(init(dialogue, dialogue.id), 4, InitProducerIdResponse)
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def wrong_producers(producer: Producer) -> list[tuple[str, Producer]]:
    producer_id, epoch = producer
    return [
        ("another producer", (producer_id + 100_000, epoch)),
        ("an earlier epoch", (producer_id, epoch - 1)),
        ("a later epoch", (producer_id, epoch + 1)),
    ]


def init_producer_id(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: InitProducerIdRequest) -> InitProducerIdResponse:
        return dialogue.ask(label, request, version, InitProducerIdResponse)

    ask("without an id", init(dialogue, None))
    ask("an empty id", init(dialogue, ""))
    ask("no time", init(dialogue, dialogue.id, transaction_timeout_ms=0))
    ask("too much time", init(dialogue, dialogue.id, transaction_timeout_ms=2_000_000_000))
    first = ask("a first time", init(dialogue, dialogue.id))
    ask("again", init(dialogue, dialogue.id))
    if version < 3:
        return
    known = first.producer_id
    for label, producer_id, epoch in (
        ("with its id and epoch", known, first.producer_epoch + 1),
        ("with an earlier epoch", known, first.producer_epoch),
        ("with another id", known + 100_000, 0),
        ("with an id and no epoch", known, -1),
        ("with an epoch and no id", -1, 1),
    ):
        ask(label, init(dialogue, dialogue.id, producer_id=producer_id, producer_epoch=epoch))


def adding(
    dialogue: Dialogue, producer: Producer, topics: dict[str, list[int]], *, only: bool = False
) -> AddPartitionsToTxnRequest:
    wanted = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]
    transaction = AddPartitionsToTxnTransaction(dialogue.id, *producer, only, wanted)
    return AddPartitionsToTxnRequest([transaction], dialogue.id, *producer, wanted)


def add_partitions_to_txn(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, request: AddPartitionsToTxnRequest) -> None:
        dialogue.ask(label, request, version, AddPartitionsToTxnResponse)

    topics = {dialogue.topic: [0, 1]}
    ask("an unknown id", adding(dialogue, (1, 0), topics))
    producer = new_producer(dialogue)
    for label, wrong in wrong_producers(producer):
        ask(label, adding(dialogue, wrong, topics))
    ask("an unknown topic", adding(dialogue, producer, {**topics, "no-such-topic": [0]}))
    if version >= 4:
        ask("only asked, and not added", adding(dialogue, producer, topics, only=True))
    ask("two partitions", adding(dialogue, producer, topics))
    ask("one of them again", adding(dialogue, producer, {dialogue.topic: [0]}))
    if version >= 4:
        ask("only asked", adding(dialogue, producer, {dialogue.topic: [0]}, only=True))


def add_offsets_to_txn(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, producer: Producer, group_id: str) -> None:
        request = AddOffsetsToTxnRequest(dialogue.id, *producer, group_id)
        dialogue.ask(label, request, version, AddOffsetsToTxnResponse)

    dialogue.quietly(
        FindCoordinatorRequest(key=dialogue.group, key_type=0), 3, FindCoordinatorResponse
    )
    ask("an unknown id", (1, 0), dialogue.group)
    producer = new_producer(dialogue)
    for label, wrong in wrong_producers(producer):
        ask(label, wrong, dialogue.group)
    ask("a group", producer, dialogue.group)
    ask("the group again", producer, dialogue.group)


def end_txn(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, producer: Producer, *, is_commit: bool = True) -> EndTxnResponse:
        request = EndTxnRequest(dialogue.id, *producer, is_commit)
        return dialogue.ask(label, request, version, EndTxnResponse)

    ask("an unknown id", (1, 0))
    producer = new_producer(dialogue)
    for label, wrong in wrong_producers(producer):
        ask(label, wrong)
    ask("a commit of nothing", producer)
    producer = new_producer(dialogue)
    ask("an abort of nothing", producer, is_commit=False)
    producer = new_producer(dialogue)
    topics = {dialogue.topic: [0]}
    dialogue.quietly(adding(dialogue, producer, topics), 3, AddPartitionsToTxnResponse)
    ask("a commit", producer)
    ask("the commit again", producer)
    ask("an abort instead", producer, is_commit=False)


def txn_offset_commit(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, producer: Producer, **fields: object) -> None:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topic = TxnOffsetCommitRequestTopic(dialogue.topic, dialogue.topic_id, [partition])
        request = TxnOffsetCommitRequest(
            transactional_id=dialogue.id,
            group_id=dialogue.group,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[topic],
        )
        if "topic" in fields:
            topic.name, topic.topic_id = str(fields.pop("topic")), NO_SUCH_ID
        for name, value in fields.items():
            setattr(request, name, value)
        dialogue.ask(label, request, version, TxnOffsetCommitResponse)

    producer = new_producer(dialogue)
    if version < 5:
        request = AddOffsetsToTxnRequest(dialogue.id, *producer, dialogue.group)
        dialogue.quietly(request, 3, AddOffsetsToTxnResponse)
    for label, wrong in wrong_producers(producer):
        ask(label, wrong)
    ask("an unknown topic", producer, topic="no-such-topic")
    ask("an offset", producer)
    if version >= 3:
        ask("an unknown member", producer, member_id="stranger", generation_id_or_member_epoch=1)


def write_txn_markers(dialogue: Dialogue, version: int) -> None:
    producer_id, epoch = new_producer(dialogue)

    def ask(label: str, epoch: int, topic: str, coordinator_epoch: int = 0) -> None:
        wanted = WritableTxnMarkerTopic(topic, [0, 9])
        marker = WritableTxnMarker(producer_id, epoch, True, [wanted], coordinator_epoch, 2)
        request = WriteTxnMarkersRequest(markers=[marker])
        dialogue.ask(label, request, version, WriteTxnMarkersResponse)

    ask("an unknown topic", epoch, "no-such-topic")
    ask("a marker", epoch + 1, dialogue.topic, 3)
    ask("the marker again", epoch + 1, dialogue.topic, 3)
    ask("an earlier epoch", epoch, dialogue.topic, 3)
    ask("an earlier coordinator", epoch + 2, dialogue.topic, 2)


def describe_transactions(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, transactional_id: str) -> None:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        dialogue.ask(label, request, version, DescribeTransactionsResponse)

    ask("no id", "")
    ask("an unknown id", dialogue.id)
    producer = new_producer(dialogue)
    ask("an id that has nothing open", dialogue.id)
    topics = {dialogue.topic: [0, 1]}
    dialogue.quietly(adding(dialogue, producer, topics), 3, AddPartitionsToTxnResponse)
    ask("an open transaction", dialogue.id)


def list_transactions(dialogue: Dialogue, version: int) -> None:
    producer = new_producer(dialogue)
    topics = {dialogue.topic: [0]}
    dialogue.quietly(adding(dialogue, producer, topics), 3, AddPartitionsToTxnResponse)
    wishes = {
        "all": ListTransactionsRequest(),
        "those that are open": ListTransactionsRequest(state_filters=["Ongoing"]),
        "those of no known state": ListTransactionsRequest(state_filters=["Ongoing", "Odd"]),
        "those of another producer": ListTransactionsRequest(
            producer_id_filters=[producer[0] + 100_000]
        ),
    }
    if version >= 1:
        wishes["those that are old"] = ListTransactionsRequest(duration_filter=3_600_000)
    if version >= 2:
        wishes["those of a name"] = ListTransactionsRequest(
            transactional_id_pattern=f".*{dialogue.id[3:]}"
        )
        wishes["a bad pattern"] = ListTransactionsRequest(transactional_id_pattern="(")
    for label, request in wishes.items():
        answer = dialogue.quietly(request, version, ListTransactionsResponse)
        states = answer.transaction_states
        answer.transaction_states = [
            each for each in states if each.transactional_id == dialogue.id
        ]
        dialogue.note(label, answer)


def describe_producers(dialogue: Dialogue, version: int) -> None:
    def ask(label: str, topic: str, *partitions: int) -> None:
        request = DescribeProducersRequest(topics=[TopicRequest(topic, list(partitions))])
        dialogue.ask(label, request, version, DescribeProducersResponse)

    ask("an unknown topic", "no-such-topic", 0)
    ask("an unknown partition and one without producers", dialogue.topic, 0, 9)
    producer = new_producer(dialogue)
    topics = {dialogue.topic: [0]}
    dialogue.quietly(adding(dialogue, producer, topics), 3, AddPartitionsToTxnResponse)
    dialogue.quietly(EndTxnRequest(dialogue.id, *producer, True), 3, EndTxnResponse)
    new_producer(dialogue)
    ask("a partition with an ended transaction", dialogue.topic, 0)


SCENARIOS = {
    find_coordinator: FindCoordinatorRequest,
    init_producer_id: InitProducerIdRequest,
    add_partitions_to_txn: AddPartitionsToTxnRequest,
    add_offsets_to_txn: AddOffsetsToTxnRequest,
    end_txn: EndTxnRequest,
    txn_offset_commit: TxnOffsetCommitRequest,
    write_txn_markers: WriteTxnMarkersRequest,
    describe_transactions: DescribeTransactionsRequest,
    list_transactions: ListTransactionsRequest,
    describe_producers: DescribeProducersRequest,
}
