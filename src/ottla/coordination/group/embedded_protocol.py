"""What consumers of the classic protocol tell each other inside JoinGroup and SyncGroup.

The bytes start with a version; later versions only add fields at the end, so what follows the
known fields is not looked at.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from ottla.errors import ProtocolError, Truncated
from ottla.protocol.codec import decode, encode
from ottla.protocol.message import Message
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

M = TypeVar("M", bound=Message)

_VERSION: Final = struct.Struct(">h")
_VERSION_MAX: Final = 3


def version_of(data: bytes) -> int:
    """The version that bytes of the embedded protocol say they have, or the newest known."""
    if len(data) < _VERSION.size:
        raise Truncated("ConsumerProtocol", len(data))
    version: int = _VERSION.unpack_from(data)[0]
    return max(0, min(version, _VERSION_MAX))


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a member wants to read and owns already; ProtocolError where it cannot be read."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a member should read; nothing where the leader said nothing."""
    return _read(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """The bytes of an assignment, as a member of that version reads them."""
    return _VERSION.pack(version) + encode(assignment, version)


def subscribed_topics(data: bytes) -> list[str]:
    """The topics a subscription names."""
    return read_subscription(data).topics


def differ_in_topics(one: bytes, other: bytes) -> bool:
    """Whether two subscriptions are known to name different topics."""
    try:
        return set(subscribed_topics(one)) != set(subscribed_topics(other))
    except ProtocolError:
        return False


def _read(message_class: type[M], data: bytes) -> M:
    version = version_of(data)
    return decode(message_class, memoryview(data)[_VERSION.size :], version)
