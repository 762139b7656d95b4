"""Which partition a record goes to, for one topic.

By its key exactly as Java's clients place it; without a key one partition at a time until its batch
is full, so that batches are large; or as a partitioner of the user's says.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from ottla.clients.metadata import TopicInfo
from ottla.clients.partitioner import murmur2
from ottla.clients.producer.batch import ProducerBatch
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, TopicId, TopicPartition
from ottla.records import speed
from ottla.records.builder import NO_PRODUCER, ProducerStamp

KEYS_REMEMBERED_MAX: Final = 65_536
_POSITIVE: Final = 0x7FFFFFFF


class Partitioner(Protocol):
    """Chooses a partition; `key` and `value` are serialized already."""

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int, /
    ) -> int: ...


class PartitionQueue:
    """What waits for one partition and what is on its way to it, in order.

    Invariant: batches that were sent and not acknowledged, wherever they are, come before those
    that were not sent, in the order of their sequences.
    """

    __slots__ = (
        "acknowledged_order",
        "doubts",
        "failures",
        "forgot",
        "gap_order",
        "has_new_leader",
        "in_flight",
        "known_producer_id",
        "last_bytes",
        "last_error",
        "next_sequence",
        "not_before",
        "open",
        "partition",
        "pending",
        "producer",
        "retrying",
        "sent_count",
        "where",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.where = TopicPartition(topic, partition)
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.last_bytes = 0
        """How large the last batch became: the next one may as well."""
        self.pending: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.sent_count = 0
        self.retrying: list[ProducerBatch] = []
        self.not_before = 0.0
        self.has_new_leader = False
        """Its leader was told with a refusal: what is repeated need not wait."""
        self.failures = 0
        self.last_error: Exception | None = None
        self.producer: ProducerStamp = NO_PRODUCER
        """Under which id and epoch it is written; the epoch is this partition's own."""
        self.next_sequence = 0
        self.known_producer_id = NO_PRODUCER.producer_id
        """Of which the broker has stored something. From one it does not know, it takes a batch of
        any sequence for the first: a second may not be on its way before the first has arrived."""
        self.gap_order = math.inf
        """From this batch on, sequences count on from records that are surely not written: what
        was sent before it is finished first, then a new epoch is due."""
        self.acknowledged_order = 0.0
        """The last batch of the epoch that the broker has stored, and with it all before it."""
        self.doubts: list[float] = []
        """These batches were given up and may be written or not: the answer to a later one tells.
        """

        self.forgot: OttlaError | None = None
        """What the broker said of a batch before which nothing was missing: it may be past it and
        have forgotten, and what else is in doubt may be written."""

    @property
    def window(self) -> int:
        """How many batches were sent from the oldest on that is still on its way."""
        return self.sent_count - self.in_flight[0].number + 1 if self.in_flight else 0

    def stored(self, batch: ProducerBatch) -> None:
        """The broker has a batch, and so all that were counted before it in the same epoch."""
        self.acknowledged_order = max(self.acknowledged_order, batch.order)
        if self.doubts:
            self.doubts = [order for order in self.doubts if order > batch.order]

    def doubt(self, batch: ProducerBatch) -> None:
        """A batch was given up, and may be written: unless it surely is."""
        if batch.order > self.acknowledged_order:
            self.doubts.append(batch.order)

    def count_anew(self) -> None:
        """A new epoch begins: what was known of the old one says nothing of it."""
        self.gap_order = math.inf
        self.forgot = None
        self.doubts.clear()
        self.acknowledged_order = 0.0
        self.next_sequence = 0

    @property
    def has_gap(self) -> bool:
        """Whether a new epoch is due."""
        return self.gap_order < math.inf

    @property
    def is_held(self) -> bool:
        """Whether its next batch must wait for a new epoch."""
        if not self.has_gap:
            return False
        return not (self.pending and 0.0 < self.pending[0].order < self.gap_order)


class Route:
    """The partitions of one topic, and where the next record without a key goes."""

    __slots__ = (
        "_hash_of_key",
        "_hashes",
        "available",
        "id",
        "leaders",
        "queues",
        "sticky",
        "topic",
        "turn",
    )

    def __init__(self, topic: TopicInfo) -> None:
        self.topic = topic.name
        self.queues: list[PartitionQueue] = []
        self._hashes: dict[bytes, int] = {}
        self._hash_of_key: Callable[[bytes], int] = self._remembered_hash
        if speed.IS_ACCELERATED:
            self._hash_of_key = speed.encoding.hash_of_key
        self.sticky = 0
        self.update(topic)
        self.turn: PartitionQueue = self.choose_sticky()
        """Where the next record without a key goes."""

    def update(self, topic: TopicInfo) -> None:
        """Takes over what is newly known; partitions are only ever added."""
        self.id: TopicId = topic.id
        for partition in range(len(self.queues), len(topic.partitions)):
            self.queues.append(PartitionQueue(self.topic, partition))
        self.leaders: list[BrokerId] = [info.leader for info in topic.partitions]
        self.leaders += [BrokerId(-1)] * (len(self.queues) - len(self.leaders))
        led = [number for number, leader in enumerate(self.leaders) if leader >= 0]
        self.available = led or list(range(len(self.queues)))

    def for_key(self, key: bytes) -> PartitionQueue:
        """The partition where every client puts this key."""
        queues = self.queues
        return queues[self._hash_of_key(key) % len(queues)]

    def _remembered_hash(self, key: bytes) -> int:
        """In Python a hash costs more than to look it up."""
        number = self._hashes.get(key)
        if number is None:
            number = murmur2(key) & _POSITIVE
            if len(self._hashes) >= KEYS_REMEMBERED_MAX:
                self._hashes.clear()
            self._hashes[key] = number
        return number

    def choose_sticky(self) -> PartitionQueue:
        """Another partition, among those with a leader, for the next records without a key."""
        available = self.available
        if len(available) > 1:
            chosen = random.choice(available)
            while chosen == self.sticky:
                chosen = random.choice(available)
            self.sticky = chosen
        elif available:
            self.sticky = available[0]
        self.turn = self.queues[self.sticky]
        return self.turn
