"""Random choices of the broker: ids that nobody had before, and where placement begins."""

from __future__ import annotations

import base64
import random
import uuid

from ottla.cluster.placement import Turn
from ottla.model.ids import TopicId


def new_cluster_id() -> str:
    """An id no cluster ever had."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def new_topic_id() -> TopicId:
    """An id no topic ever had."""
    return TopicId(uuid.uuid4().bytes)


def new_turn() -> Turn:
    """Where the placement of a topic's partitions begins."""
    return Turn(random.getrandbits(16), random.getrandbits(16))


def new_session_id() -> int:
    """An id that hardly any fetch session had before, also before this broker was started."""
    return random.randint(1, 2**31 - 1)
