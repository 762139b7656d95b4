"""One side of a recorded conversation: sends requests and keeps the answers in a form that is the
same on any broker and in any run.

Ids that a broker or a run chooses become words by the order in which they appear; fields that have
their default are left out; sentences in `error_message` are each broker's own and are left out too.
"""

import uuid
from typing import Any, TypeVar

import msgspec

from ottla.protocol.message import Message
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.plan import schema_of
from support.eventually import eventually
from support.typed_connection import TypedConnection

M = TypeVar("M", bound=Message)

NOT_READY = {14, 15, 16, 51}
"""Coordinators that are being loaded, not there yet, or still busy with the last request."""
VOLATILE = {"throttle_time_ms", "error_message", "host", "port", "node_id", "heartbeat_interval_ms"}
TIMES = {"transaction_start_time_ms", "last_timestamp"}
PRODUCERS = {"producer_id", "ongoing_txn_producer_id"}


class Dialogue:
    """A conversation with one broker about names that nobody else uses."""

    def __init__(self, bootstrap: str) -> None:
        self.connection = TypedConnection(bootstrap)
        self.bootstrap = bootstrap
        run = uuid.uuid4().hex[:12]
        self.group, self.other_group = f"group-{run}", f"other-{run}"
        self.topic, self.id = f"topic-{run}", f"id-{run}"
        self.transcript: list[list[Any]] = []
        self._words: dict[str, str] = {
            self.group: "<group>",
            self.other_group: "<other group>",
            self.topic: "<topic>",
            self.id: "<id>",
        }
        self._producers: dict[int, str] = {}
        for key_type in (0, 1):  # their topics are made when they are first looked for
            finding = FindCoordinatorRequest(key=run, key_type=key_type)
            self.quietly(finding, 3, FindCoordinatorResponse)
        self._create_topic()

    def close(self) -> None:
        self.connection.close()

    def _create_topic(self) -> None:
        topic = CreatableTopic(self.topic, 2, 1)
        self.connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        self.topic_id: bytes = eventually(self._find_topic, "the topic")
        self._words[self.topic_id.hex()] = "<topic id>"
        eventually(self._is_known_to_groups, "groups that know the topic")

    def _find_topic(self) -> bytes:
        """The topic's id; nothing while it is not there."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)])
        answer = self.connection.call(request, 12)
        assert isinstance(answer, MetadataResponse)
        return b"" if codes_in(answer) - {0} else answer.topics[0].topic_id

    def _is_known_to_groups(self) -> bool:
        group_id = f"probe-{uuid.uuid4()}"
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            member_id="probe",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )
        joined = self.quietly(request, 0, ConsumerGroupHeartbeatResponse)
        leaving = ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id="probe", member_epoch=-1
        )
        self.quietly(leaving, 0, ConsumerGroupHeartbeatResponse)
        producers = DescribeProducersRequest(topics=[TopicRequest(self.topic, [0, 1])])
        led = self.quietly(producers, 0, DescribeProducersResponse)
        is_assigned = joined.assignment is not None and joined.assignment.topic_partitions
        return bool(is_assigned) and codes_in(led) == {0}

    def versions(self, request_class: type[Message]) -> range:
        """The versions of an API that the broker speaks."""
        answer = self.connection.call(ApiVersionsRequest(), 0)
        assert isinstance(answer, ApiVersionsResponse)
        key = schema_of(request_class).api_key
        (found,) = [each for each in answer.api_keys if each.api_key == key]
        return range(found.min_version, found.max_version + 1)

    def name(self, volatile: str, word: str) -> None:
        """Has a string that the broker chose told by a word."""
        self._words.setdefault(volatile, word)

    def ask(self, label: str, request: Message, version: int, answer_class: type[M]) -> M:
        """Sends a request until it is answered for good, and notes the answer."""
        answer = self.quietly(request, version, answer_class)
        self.note(label, answer)
        return answer

    def quietly(self, request: Message, version: int, answer_class: type[M]) -> M:
        """The same, with nothing noted: what leads up to what is compared."""

        def answered() -> Message | None:
            answer = self.connection.call(request, version)
            return None if NOT_READY & codes_in(answer) else answer

        answer = eventually(answered, f"an answer to {request}")
        assert isinstance(answer, answer_class)
        return answer

    def note(self, label: str, answer: Message) -> None:
        self.transcript.append([label, self._plain(answer)])

    def _plain(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Message):
            return self._fields(value)
        if isinstance(value, list | tuple):
            plain = [self._plain(each, field) for each in value]
            return sorted(plain, key=str)
        if isinstance(value, bytes | memoryview):
            text = bytes(value).hex()
            return self._words.get(text, text)
        if isinstance(value, str):
            return self._worded(value)
        if field in PRODUCERS and value >= 0:
            return self._producers.setdefault(value, f"<producer {len(self._producers) + 1}>")
        if field in TIMES and value > 0:
            return "<time>"
        return value

    def _fields(self, message: Message) -> dict[str, Any]:
        blank = type(message)()
        found = {}
        for name in message.__struct_fields__:
            value = getattr(message, name)
            if name not in VOLATILE and value != getattr(blank, name):
                found[name] = self._plain(value, name)
        return found

    def _worded(self, text: str) -> str:
        for volatile, word in self._words.items():
            if volatile:
                text = text.replace(volatile, word)
        return text


def codes_in(value: Any) -> set[int]:
    """Every error code in an answer."""
    if isinstance(value, Message):
        found: set[int] = set()
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            found |= {inner} if name.endswith("error_code") else codes_in(inner)
        return found
    if isinstance(value, list):
        return set().union(*map(codes_in, value))
    return set()


def as_json(transcript: list[list[Any]]) -> Any:
    """As it looks after it was written to a file and read back."""
    return msgspec.json.decode(msgspec.json.encode(transcript))
