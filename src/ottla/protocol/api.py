"""The table of APIs: one row an API, and what follows from it.

A row's messages are found by the API's name: `Produce` is `ProduceRequest` and `ProduceResponse` in
`messages/produce.py`, which is imported when first asked for. Versions come from the request's
schema. Does not know which APIs a broker serves: that is what its handlers say.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

import msgspec

from ottla.errors import UnknownApi
from ottla.protocol.message import VERSION_MAX, Message, VersionRange, parse_versions
from ottla.protocol.plan import schema_of


class ApiKey(IntEnum):
    """The number that names an API on the wire."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93


class Api(msgspec.Struct, frozen=True, eq=False):
    """One API: a request, its response and their versions. There is one object for each key."""

    key: ApiKey
    name: str

    @property
    def request(self) -> type[Message]:
        """The class of its request."""
        return _messages(self.key)[0]

    @property
    def response(self) -> type[Message]:
        """The class of its response."""
        return _messages(self.key)[1]

    @property
    def versions(self) -> VersionRange:
        """Every version that can be read and written."""
        return parse_versions(schema_of(self.request).versions)

    @property
    def stable_versions(self) -> VersionRange:
        """The versions a broker may offer: all but those still subject to change."""
        return _stable_versions(self)

    @property
    def flexible_from(self) -> int:
        """The first flexible version, or more than any version."""
        flexible = parse_versions(schema_of(self.request).flexible)
        return flexible.first if flexible.last >= flexible.first else VERSION_MAX + 1

    def request_header_version(self, version: int) -> int:
        """Flexible requests have a header with a tagged section."""
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        """As for requests, save ApiVersions, whose reader does not know yet what to expect."""
        return 1 if version >= self.flexible_from and self.key is not ApiKey.API_VERSIONS else 0


@cache
def _stable_versions(api: Api) -> VersionRange:
    every = api.versions
    unstable = parse_versions(schema_of(api.request).unstable)
    if every.last in unstable:
        return VersionRange(every.first, unstable.first - 1)
    if every.first in unstable:
        return VersionRange(unstable.last + 1, every.last)
    return every


def _name(key: ApiKey) -> str:
    """DESCRIBE_ACLS is DescribeAcls."""
    return "".join(word.capitalize() for word in key.name.split("_"))


@cache
def _messages(key: ApiKey) -> tuple[type[Message], type[Message]]:
    module = import_module(f"ottla.protocol.messages.{key.name.lower()}")
    return getattr(module, f"{_name(key)}Request"), getattr(module, f"{_name(key)}Response")


APIS: Final[Mapping[ApiKey, Api]] = MappingProxyType({key: Api(key, _name(key)) for key in ApiKey})


def api_of(api_key: int) -> Api:
    """The API with this number, or UnknownApi."""
    try:
        return APIS[ApiKey(api_key)]
    except ValueError:
        raise UnknownApi(api_key) from None
