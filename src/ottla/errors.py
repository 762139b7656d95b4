"""The wire's error codes, and every exception the project raises about them.

An exception carries the code a client will see and the facts it is about; it forms its own
sentence from them. One place in the broker turns `.code` into a field of a response.

    OttlaError
    ├── ProtocolError               the peer broke the wire format
    │   ├── Truncated               the bytes end inside a field
    │   ├── BadLength               a length, count or marker that cannot be
    │   ├── TooManyElements         more array elements than a message may have
    │   ├── BadText                 a string that is not UTF-8
    │   ├── FrameTooLarge           a frame's announced size is out of bounds
    │   ├── UnknownApi              no such api key
    │   └── UnsupportedVersion      the api exists, the version does not
    ├── RecordError                 the records themselves are not acceptable
    │   ├── CorruptBatch
    │   ├── InvalidRecord
    │   │   ├── RecordsWithoutKey
    │   │   └── ExpandsTooFar
    │   ├── RecordTooLarge
    │   ├── RecordListTooLarge
    │   ├── InvalidTimestamp
    │   ├── UnsupportedCompression
    │   └── UnsupportedForMessageFormat
    ├── LogError                    the log cannot do what was asked of it
    │   ├── OffsetOutOfRange
    │   ├── StorageFailed
    │   ├── OutOfOrderSequence
    │   ├── DuplicateSequence
    │   ├── InvalidProducerEpoch
    │   └── UnknownProducer
    ├── RequestFailed               a handler refuses, with an explicit code
    │   ├── InvalidRequest
    │   ├── InvalidTopic
    │   ├── TopicExists
    │   ├── UnknownTopic
    │   ├── UnknownTopicId
    │   ├── InvalidPartitions
    │   ├── InvalidReplicationFactor
    │   ├── InvalidReplicaAssignment
    │   ├── InvalidConfig
    │   ├── PolicyViolation
    │   ├── NotLeader
    │   ├── NotEnoughReplicas
    │   ├── NotEnoughReplicasAfterAppend
    │   └── TimedOut
    └── ConfigError                 a setting of this process is wrong: names it, and the fix
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ErrorCode(IntEnum):
    """What a response says went wrong: a number, whether trying again can help, a sentence."""

    retriable: bool
    sentence: str

    def __new__(cls, code: int, retriable: bool, sentence: str) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.sentence = sentence
        return member

    @classmethod
    def of(cls, code: int) -> ErrorCode:
        """The error a number on the wire stands for; one that nobody knows is the broker's own."""
        found = cls._value2member_map_.get(code, cls.UNKNOWN_SERVER_ERROR)
        assert isinstance(found, ErrorCode)
        return found

    UNKNOWN_SERVER_ERROR = -1, False, "Something failed in the broker that it did not foresee."
    NONE = 0, False, "No error."
    OFFSET_OUT_OF_RANGE = 1, False, "The partition does not hold this offset."
    CORRUPT_MESSAGE = 2, True, "The records are damaged: their checksum or their size is wrong."
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "This broker has no such topic or partition."
    INVALID_FETCH_SIZE = 4, False, "The fetch asks for an impossible number of bytes."
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, True, "This broker does not lead, or does not hold, the partition."
    REQUEST_TIMED_OUT = 7, True, "The request was not finished in the time it allowed."
    BROKER_NOT_AVAILABLE = 8, False, "The broker is not there."
    REPLICA_NOT_AVAILABLE = 9, True, "The replica of this partition cannot be reached."
    MESSAGE_TOO_LARGE = 10, False, "A batch is larger than the topic accepts."
    STALE_CONTROLLER_EPOCH = 11, False, "The request comes from a controller that was replaced."
    OFFSET_METADATA_TOO_LARGE = 12, False, "The text stored beside the offset is too long."
    NETWORK_EXCEPTION = 13, True, "The connection closed before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, True, "No coordinator is available yet."
    NOT_COORDINATOR = 16, True, "Another broker coordinates this group or transaction."
    INVALID_TOPIC_EXCEPTION = 17, False, "The topic's name is not allowed, or not for this use."
    RECORD_LIST_TOO_LARGE = 18, False, "The records do not fit in one segment of the log."
    NOT_ENOUGH_REPLICAS = 19, True, "Too few replicas are in sync; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "Written, but too few replicas are in sync now."
    INVALID_REQUIRED_ACKS = 21, False, "acks must be 0, 1 or -1 (all)."
    ILLEGAL_GENERATION = 22, False, "The group has moved on to another generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member shares no protocol with its group."
    INVALID_GROUP_ID = 24, False, "The group's name is not valid."
    UNKNOWN_MEMBER_ID = 25, False, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is outside the broker's bounds."
    REBALANCE_IN_PROGRESS = 27, False, "The group is rebalancing; join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The offset commit is too large."
    TOPIC_AUTHORIZATION_FAILED = 29, False, "This user may not do that to the topic."
    GROUP_AUTHORIZATION_FAILED = 30, False, "This user may not do that to the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "This user may not do that to the cluster."
    INVALID_TIMESTAMP = 32, False, "A record's timestamp is further from now than the topic allows."
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, False, "The request does not fit this step of the authentication."
    UNSUPPORTED_VERSION = 35, False, "The broker does not speak this version of the request."
    TOPIC_ALREADY_EXISTS = 36, False, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, False, "The number of partitions is not possible."
    INVALID_REPLICATION_FACTOR = 38, False, "There are not that many brokers to replicate to."
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The assignment of replicas to brokers is not valid."
    INVALID_CONFIG = 40, False, "A setting is unknown or has a value it cannot have."
    NOT_CONTROLLER = 41, True, "Another broker is the controller."
    INVALID_REQUEST = 42, False, "The request makes no sense as it was sent."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The old record format in use cannot express this."
    POLICY_VIOLATION = 44, False, "A policy of this cluster forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "A batch of this producer is missing before this one."
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "The producer sent this batch before."
    INVALID_PRODUCER_EPOCH = 47, False, "A newer instance of this producer has taken over."
    INVALID_TXN_STATE = 48, False, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The transactional id belongs to another producer id."
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        False,
        "The transaction timeout is above the broker's maximum.",
    )
    CONCURRENT_TRANSACTIONS = 51, True, "The previous step of this transaction is still under way."
    TRANSACTION_COORDINATOR_FENCED = 52, False, "The marker comes from a replaced coordinator."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "This user may not use the transactional id."
    SECURITY_DISABLED = 54, False, "Security is not switched on in this cluster."
    OPERATION_NOT_ATTEMPTED = 55, False, "Not tried, because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, True, "The disk failed while the log was read or written."
    LOG_DIR_NOT_FOUND = 57, False, "The broker has no such data directory."
    SASL_AUTHENTICATION_FAILED = 58, False, "The user or the password was not accepted."
    UNKNOWN_PRODUCER_ID = 59, False, "The broker no longer remembers this producer."
    REASSIGNMENT_IN_PROGRESS = 60, False, "The partition's replicas are being moved already."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The token belongs to someone else."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "This connection may not ask for tokens."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "This user may not do that to the token."
    DELEGATION_TOKEN_EXPIRED = 66, False, "The delegation token's time is over."
    INVALID_PRINCIPAL_TYPE = 67, False, "The principal is of a kind the broker does not know."
    NON_EMPTY_GROUP = 68, False, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, False, "There is no group of this name."
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "The broker has forgotten this fetch session."
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch is not the next one of its session."
    LISTENER_NOT_FOUND = 72, True, "The partition's leader has no listener of this kind."
    TOPIC_DELETION_DISABLED = 73, False, "This cluster does not allow topics to be deleted."
    FENCED_LEADER_EPOCH = 74, True, "The request's leader epoch is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, True, "The request's leader epoch is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "The codec of these records cannot be used here."
    STALE_BROKER_EPOCH = 77, False, "The broker has registered anew since."
    OFFSET_NOT_AVAILABLE = 78, True, "The new leader does not yet know how far records are safe."
    MEMBER_ID_REQUIRED = 79, False, "Join again with the member id given in this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader cannot lead now."
    GROUP_MAX_SIZE_REACHED = 81, False, "The group is full."
    FENCED_INSTANCE_ID = 82, False, "Another member uses the same group.instance.id now."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "No replica can be elected leader now."
    ELECTION_NOT_NEEDED = 84, True, "The partition has the leader it should have."
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "The partition's replicas are not being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "The group still reads the topic."
    INVALID_RECORD = 87, False, "A record breaks a rule of its topic or of its format."
    UNSTABLE_OFFSET_COMMIT = 88, True, "The offset is part of a transaction not yet ended."
    THROTTLING_QUOTA_EXCEEDED = 89, True, "A quota is used up; wait and try again."
    PRODUCER_FENCED = 90, False, "A newer producer uses the same transactional id."
    RESOURCE_NOT_FOUND = 91, False, "The request names something that does not exist."
    DUPLICATE_RESOURCE = 92, False, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential is weaker than the broker accepts."
    INCONSISTENT_VOTER_SET = 94, False, "Sender or receiver is not among the voters."
    INVALID_UPDATE_VERSION = 95, False, "The update carries a version that does not follow."
    FEATURE_UPDATE_FAILED = 96, False, "The feature's level could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "A forwarded request's user cannot be read."
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, False, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, True, "This broker has no topic with this id."
    DUPLICATE_BROKER_REGISTRATION = 101, False, "Another live broker has this id."
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker of this id is registered."
    INCONSISTENT_TOPIC_ID = 103, True, "The log belongs to another topic of the same name."
    INCONSISTENT_CLUSTER_ID = 104, False, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "A fetch session mixes topic names and topic ids."
    INELIGIBLE_REPLICA = 107, False, "A replica that may not be in sync was named as such."
    NEW_LEADER_ELECTED = 108, False, "The change was made, and another broker leads now."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset is kept in tiered storage."
    FENCED_MEMBER_EPOCH = 110, False, "The member was fenced; give up its partitions and rejoin."
    UNRELEASED_INSTANCE_ID = 111, False, "A member with this instance id has not left yet."
    UNSUPPORTED_ASSIGNOR = 112, False, "The group cannot use this assignor."
    STALE_MEMBER_EPOCH = 113, False, "The member's epoch is old; wait for the next heartbeat."
    MISMATCHED_ENDPOINT_TYPE = 114, False, "The request belongs on another kind of listener."
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "This kind of listener is not supported."
    UNKNOWN_CONTROLLER_ID = 116, False, "There is no controller of this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription is not the current one."
    TELEMETRY_TOO_LARGE = 118, False, "The pushed telemetry is too large."
    INVALID_REGISTRATION = 119, False, "The broker's registration was refused."
    TRANSACTION_ABORTABLE = 120, False, "The transaction failed; abort it and go on."
    INVALID_RECORD_STATE = 121, False, "The record cannot be acknowledged in its present state."
    SHARE_SESSION_NOT_FOUND = 122, True, "The broker has forgotten this share session."
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The request is not the next one of its share session."
    FENCED_STATE_EPOCH = 124, False, "The share group's state has a newer epoch."
    INVALID_VOTER_KEY = 125, False, "The voter's key is not the one expected."
    DUPLICATE_VOTER = 126, False, "The voter is in the set already."
    VOTER_NOT_FOUND = 127, False, "The voter is not in the set."
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression cannot be understood."
    REBOOTSTRAP_REQUIRED = (
        129,
        False,
        "The client's picture is too old; start from the bootstrap list.",
    )
    STREAMS_INVALID_TOPOLOGY = 130, False, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The topology's epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, False, "The group uses a newer topology."
    SHARE_SESSION_LIMIT_REACHED = 133, True, "The broker keeps no more share sessions."


class OttlaError(Exception):
    """Anything that goes wrong in a way the project foresees."""

    code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str | None = None) -> None:
        self.message = self.code.sentence if message is None else message
        super().__init__(self.message)


# --- the wire format -----------------------------------------------------------------------------


class ProtocolError(OttlaError):
    """The peer sent bytes that are not the message they should be."""

    code = ErrorCode.INVALID_REQUEST


class Truncated(ProtocolError):
    """The bytes end inside a field."""

    def __init__(self, message_name: str, available: int) -> None:
        self.message_name = message_name
        self.available = available
        super().__init__(f"{message_name} ends too early: {available} bytes are not enough")


class BadLength(ProtocolError):
    """A length, a count or a marker that no valid message has."""

    def __init__(self, message_name: str, field_name: str, value: int) -> None:
        self.message_name = message_name
        self.field_name = field_name
        self.value = value
        super().__init__(f"{message_name}.{field_name} cannot have the length {value}")


class TooManyElements(ProtocolError):
    """The arrays of a message announce more elements than the limit, or than the bytes can hold."""

    def __init__(self, message_name: str, field_name: str, count: int) -> None:
        self.message_name = message_name
        self.field_name = field_name
        self.count = count
        super().__init__(f"{message_name}.{field_name} announces {count} elements: too many")


class BadText(ProtocolError):
    """A string is not UTF-8."""

    def __init__(self, message_name: str, position: int) -> None:
        self.message_name = message_name
        self.position = position
        super().__init__(f"{message_name} has text that is not UTF-8, near byte {position}")


class FrameTooLarge(ProtocolError):
    """A frame announces a size the receiver will not read."""

    def __init__(self, size_bytes: int, size_bytes_max: int) -> None:
        self.size_bytes = size_bytes
        self.size_bytes_max = size_bytes_max
        super().__init__(f"a frame of {size_bytes} bytes; allowed are 0 to {size_bytes_max}")


class UnknownApi(ProtocolError):
    """No API has this key."""

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key
        super().__init__(f"there is no API with the key {api_key}")


class UnsupportedVersion(ProtocolError):
    """The message exists, but not in this version."""

    code = ErrorCode.UNSUPPORTED_VERSION

    def __init__(self, message_name: str, version: int) -> None:
        self.message_name = message_name
        self.version = version
        super().__init__(f"{message_name} has no version {version}")


# --- records -------------------------------------------------------------------------------------


class RecordError(OttlaError):
    """The records are not acceptable, whatever the log."""

    code = ErrorCode.INVALID_RECORD


class CorruptBatch(RecordError):
    """The bytes are not an intact batch."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(RecordError):
    """The batch is intact, but breaks a rule."""


class RecordsWithoutKey(InvalidRecord):
    """Records of a compacted topic need keys; `indexes` are their places in the batch."""

    def __init__(self, indexes: list[int]) -> None:
        self.indexes = indexes
        super().__init__(
            f"{len(indexes)} records have no key, which those of a compacted topic need; the first"
            f" is record {indexes[0]} of its batch"
        )


class ExpandsTooFar(InvalidRecord):
    """What is compressed comes to more than was allowed for."""


class RecordTooLarge(RecordError):
    """One batch is larger than the topic's max.message.bytes."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size_bytes: int, size_bytes_max: int) -> None:
        self.size_bytes = size_bytes
        self.size_bytes_max = size_bytes_max
        super().__init__(f"a batch of {size_bytes} bytes; the topic accepts {size_bytes_max}")


class RecordListTooLarge(RecordError):
    """All batches of one append together do not fit in a segment."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE

    def __init__(self, size_bytes: int, segment_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.segment_bytes = segment_bytes
        super().__init__(
            f"{size_bytes} bytes of records do not fit in a segment of {segment_bytes}"
        )


class InvalidTimestamp(RecordError):
    """A timestamp is further from now than the topic allows."""

    code = ErrorCode.INVALID_TIMESTAMP

    def __init__(self, timestamp_ms: int, now_ms: int) -> None:
        self.timestamp_ms = timestamp_ms
        self.now_ms = now_ms
        super().__init__(f"the timestamp {timestamp_ms} is too far from the broker's {now_ms}")


class UnsupportedCompression(RecordError):
    """The codec is unknown, or may not be used with this version of the request."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class UnsupportedForMessageFormat(RecordError):
    """The record format in use cannot express what is asked."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


# --- the log -------------------------------------------------------------------------------------


class LogError(OttlaError):
    """A log cannot do what was asked of it."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class OffsetOutOfRange(LogError):
    """The log holds [start, end), and the offset lies outside."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, offset: int, start: int, end: int) -> None:
        self.offset = offset
        self.start = start
        self.end = end
        super().__init__(f"offset {offset} is outside of the log's range {start} to {end}")


class StorageFailed(LogError):
    """The disk refused, or what it holds is not what was written."""


class OutOfOrderSequence(LogError):
    """A batch of this producer is missing before the one that came."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def __init__(self, producer_id: int, expected: int, received: int) -> None:
        self.producer_id = producer_id
        self.expected = expected
        self.received = received
        super().__init__(f"producer {producer_id} sent sequence {received} instead of {expected}")


class DuplicateSequence(LogError):
    """The batch was written before, too long ago to know at which offset."""

    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER

    def __init__(self, producer_id: int, sequence: int) -> None:
        self.producer_id = producer_id
        self.sequence = sequence
        super().__init__(f"producer {producer_id} sent sequence {sequence} before")


class InvalidProducerEpoch(LogError):
    """A newer instance of the producer has written already."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH

    def __init__(self, producer_id: int, epoch: int, current_epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.current_epoch = current_epoch
        super().__init__(f"producer {producer_id} has epoch {epoch}; {current_epoch} is current")


class UnknownProducer(LogError):
    """The log does not remember the producer."""

    code = ErrorCode.UNKNOWN_PRODUCER_ID

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        super().__init__(f"the log does not remember producer {producer_id}")


# --- requests ------------------------------------------------------------------------------------


class RequestFailed(OttlaError):
    """A handler refuses a request, or one part of it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        super().__init__(message)


class _FixedCode(RequestFailed):
    """A refusal whose type says the code."""

    fixed_code: ClassVar[ErrorCode] = ErrorCode.INVALID_REQUEST

    def __init__(self, message: str | None = None) -> None:
        super().__init__(self.fixed_code, message)


class InvalidRequest(_FixedCode):
    """The request contradicts itself or the rules."""


class InvalidTopic(_FixedCode):
    """The topic's name is not allowed, or not for this use."""

    fixed_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicExists(_FixedCode):
    """A topic of the name exists already."""

    fixed_code = ErrorCode.TOPIC_ALREADY_EXISTS

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(f"topic {topic!r} exists already")


class UnknownTopic(_FixedCode):
    """There is no such topic or partition here."""

    fixed_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def __init__(self, topic: str, partition: int | None = None) -> None:
        self.topic = topic
        self.partition = partition
        name = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
        super().__init__(f"this broker has no {name}")


class UnknownTopicId(_FixedCode):
    """There is no topic of this id here."""

    fixed_code = ErrorCode.UNKNOWN_TOPIC_ID

    def __init__(self, topic_id: bytes) -> None:
        self.topic_id = topic_id
        super().__init__(f"this broker has no topic with the id {topic_id.hex()}")


class InvalidPartitions(_FixedCode):
    """The number of partitions is not possible."""

    fixed_code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(_FixedCode):
    """There are not that many brokers."""

    fixed_code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(_FixedCode):
    """Replicas are assigned to brokers in a way that cannot be."""

    fixed_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfig(_FixedCode):
    """A client asks for a setting that does not exist or a value it cannot have."""

    fixed_code = ErrorCode.INVALID_CONFIG


class PolicyViolation(_FixedCode):
    """Allowed by the protocol, forbidden by this cluster."""

    fixed_code = ErrorCode.POLICY_VIOLATION


class NotLeader(_FixedCode):
    """Another broker leads the partition."""

    fixed_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class NotEnoughReplicas(RequestFailed):
    """Too few replicas are in sync for a write that is to be on all of them."""

    def __init__(self, partition: object, count: int, needed: int) -> None:
        self.partition, self.count, self.needed = partition, count, needed
        super().__init__(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{partition} has {count} replicas in sync; min.insync.replicas asks for {needed}",
        )


class NotEnoughReplicasAfterAppend(RequestFailed):
    """The records are committed, but on fewer replicas than was asked."""

    def __init__(self, partition: object) -> None:
        self.partition = partition
        super().__init__(
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            f"the records are in {partition}, but fewer replicas than min.insync.replicas asks for"
            " are in sync by now",
        )


class TimedOut(_FixedCode):
    """The request's own time is over."""

    fixed_code = ErrorCode.REQUEST_TIMED_OUT


class ConfigError(OttlaError):
    """A setting of this process is wrong; the message names it and says what to write instead."""

    code = ErrorCode.INVALID_CONFIG

    def __init__(self, setting: str, problem: str, fix: str = "") -> None:
        self.setting = setting
        self.problem = problem
        self.fix = fix
        super().__init__(f"{setting}: {problem}" + (f"; {fix}" if fix else ""))
