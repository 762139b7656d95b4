"""Ottla: the Kafka platform for Python people.

`ottla.Producer`, `ottla.Consumer` and `ottla.Admin` are for threads and scripts, `ottla.aio` has
the same for asyncio. They are imported when first used, so that `import ottla` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla import compiled

if TYPE_CHECKING:
    from ottla.clients.blocking.admin import Admin as Admin
    from ottla.clients.blocking.consumer import Consumer as Consumer
    from ottla.clients.blocking.producer import Producer as Producer
    from ottla.clients.blocking.topic_reader import iter_topic as iter_topic
    from ottla.clients.blocking.topic_reader import read_topic as read_topic
    from ottla.clients.configs import Resource as Resource
    from ottla.clients.configs import ResourceKind as ResourceKind
    from ottla.clients.consumer.group_place import OffsetAndMetadata as OffsetAndMetadata
    from ottla.clients.consumer.listener import RebalanceListener as RebalanceListener
    from ottla.clients.consumer.record import ConsumerRecord as ConsumerRecord
    from ottla.clients.consumer.subscription import SubscriptionPattern as SubscriptionPattern
    from ottla.clients.consumer.unreadable import UnreadableBatch as UnreadableBatch
    from ottla.clients.consumer.unreadable import UnreadableRecord as UnreadableRecord
    from ottla.clients.failures import Fault as Fault
    from ottla.clients.failures import SendsFailed as SendsFailed
    from ottla.clients.failures import fault_of as fault_of
    from ottla.clients.failures import is_worth_retrying as is_worth_retrying
    from ottla.clients.producer.batch import RecordMetadata as RecordMetadata
    from ottla.clients.topics import NewTopic as NewTopic
    from ottla.errors import ErrorCode as ErrorCode
    from ottla.errors import OttlaError as OttlaError
    from ottla.model.ids import TopicPartition as TopicPartition

__version__ = "0.1.0"

compiled.install()

_HOMES = {
    "Admin": "ottla.clients.blocking.admin",
    "Consumer": "ottla.clients.blocking.consumer",
    "ConsumerRecord": "ottla.clients.consumer.record",
    "ErrorCode": "ottla.errors",
    "Fault": "ottla.clients.failures",
    "NewTopic": "ottla.clients.topics",
    "OffsetAndMetadata": "ottla.clients.consumer.group_place",
    "OttlaError": "ottla.errors",
    "Producer": "ottla.clients.blocking.producer",
    "RebalanceListener": "ottla.clients.consumer.listener",
    "RecordMetadata": "ottla.clients.producer.batch",
    "Resource": "ottla.clients.configs",
    "ResourceKind": "ottla.clients.configs",
    "SendsFailed": "ottla.clients.failures",
    "SubscriptionPattern": "ottla.clients.consumer.subscription",
    "TopicPartition": "ottla.model.ids",
    "UnreadableBatch": "ottla.clients.consumer.unreadable",
    "UnreadableRecord": "ottla.clients.consumer.unreadable",
    "fault_of": "ottla.clients.failures",
    "is_worth_retrying": "ottla.clients.failures",
    "iter_topic": "ottla.clients.blocking.topic_reader",
    "read_topic": "ottla.clients.blocking.topic_reader",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
