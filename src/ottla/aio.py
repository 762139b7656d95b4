"""The clients for asyncio: the same core as `ottla.Producer` and its like, without a thread."""

from ottla.clients.admin import Admin
from ottla.clients.arrow.topic_reader import iter_topic, read_topic
from ottla.clients.consumer.aio import Consumer
from ottla.clients.producer.aio import Producer

__all__ = ["Admin", "Consumer", "Producer", "iter_topic", "read_topic"]
