"""The consumer for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ottla.clients.arrow.columns import COLUMNS
from ottla.clients.arrow.polling import ArrowPoll, plan_poll, table_of
from ottla.clients.consumer import operations
from ottla.clients.consumer.committing import CommitCallback
from ottla.clients.consumer.core import ConsumerCore
from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.consumer.interceptors import ConsumerInterceptor
from ottla.clients.consumer.listener import RebalanceListener
from ottla.clients.consumer.metrics import ConsumerMetrics
from ottla.clients.consumer.plan import plan_consumer
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.consumer.subscription import TakenBatches, Wanted
from ottla.clients.consumer.unreadable import UNREADABLE, OnError, Unreadable
from ottla.clients.failures import ClientClosed
from ottla.clients.metadata import TopicInfo
from ottla.clients.offsets import ListedOffset
from ottla.clients.producer.core import with_bootstrap
from ottla.clients.serializers import Choice
from ottla.clients.settings_source import Config
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow

ITERATION_WAIT_S = 60.0


class Consumer:
    """Reads records, alone or in a group.

    `async with Consumer("topic", bootstrap_servers="host:9092", group_id="g") as consumer:` and
    then `async for record in consumer` or `await consumer.poll()`. Settings are keywords, or
    Kafka's own names in `config`: a mapping or the path of a properties file.
    """

    __slots__ = ("_core", "_plan", "_topics")

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: Config = None,
        key_deserializer: Choice = None,
        value_deserializer: Choice = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        on_error: OnError = "raise",
        **settings: object,
    ) -> None:
        self._plan = plan_consumer(
            config,
            with_bootstrap(settings, bootstrap_servers),
            deserializers=(key_deserializer, value_deserializer),
            interceptors=interceptors,
            on_error=on_error,
        )
        self._topics = topics
        self._core: ConsumerCore | None = None

    async def start(self) -> None:
        """Connects, and subscribes to the topics that were named; entering the context does so."""
        if self._core is None:
            core = ConsumerCore(self._plan)
            try:
                await core.start()
                if self._topics:
                    core.subscribe(self._topics, None)
            except BaseException:
                await core.close(0.0)
                raise
            self._core = core

    async def close(self, timeout_s: float | None = 30.0) -> None:
        """Commits, if that is on, leaves the group and disconnects."""
        if self._core is not None:
            await self._core.close(timeout_s)

    async def __aenter__(self) -> Consumer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # --- what to read

    def subscribe(self, topics: Wanted, listener: RebalanceListener | None = None) -> None:
        """Reads topics by name, re.Pattern or SubscriptionPattern, as the group shares them out."""
        self._running().subscribe([topics] if isinstance(topics, str) else topics, listener)

    async def unsubscribe(self) -> None:
        """Reads nothing any more, and leaves the group."""
        await self._running().unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these, whatever others read."""
        self._running().assign(partitions)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What is read now."""
        return self._running().group.owned()

    # --- reading

    async def poll(
        self, timeout_s: float = 1.0, *, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Records as soon as there are some; an empty list after `timeout_s`.

        At a record that cannot be read it raises UnreadableRecord, or UnreadableBatch, every time
        until `skip` or `seek`; the records before it were returned, and none behind it is lost.
        """
        core = self._running()
        try:
            if not core.needs_attention and (records := core.reader.take(max_records)):
                return records
        except UNREADABLE as error:
            await core.reader.met(error)
        return await core.poll(timeout_s, max_records)

    async def poll_arrow(
        self,
        timeout_s: float = 1.0,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        columns: Sequence[str] = COLUMNS,
    ) -> pyarrow.Table:
        """Records as an Arrow table, as soon as there are some; an empty one after `timeout_s`.

        `max_bytes` counts what came over the wire. Deserializers and interceptors are not used.
        """
        core = self._running()
        wanted = plan_poll(max_records, max_bytes, columns)
        while True:
            found = await self._batches(core, timeout_s, wanted)
            try:
                return table_of(core, found, wanted)
            except UNREADABLE as error:
                await core.reader.met(error)

    async def _batches(
        self, core: ConsumerCore, timeout_s: float, wanted: ArrowPoll
    ) -> list[TakenBatches]:
        try:
            if not core.needs_attention and (found := core.reader.take_batches(*wanted.limits)):
                return found
        except UNREADABLE as error:
            await core.reader.met(error)
        return await core.poll_batches(timeout_s, *wanted.limits)

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> ConsumerRecord:
        subscription = self._running().subscription
        while (record := next(subscription.iterated, None)) is None:
            subscription.iterated = iter(await self.poll(ITERATION_WAIT_S))
        return record

    # --- positions

    async def position(self, partition: TopicPartition) -> int:
        """The offset the next poll begins with."""
        return await operations.position(self._running(), partition)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll returns records from this offset on."""
        operations.seek(self._running(), partition, offset)

    def skip(self, error: Unreadable) -> None:
        """Goes on behind what `poll` could not read; nothing happens if it is elsewhere already."""
        self._running().reader.skip(error)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Begins with the first record; all partitions unless some are named."""
        operations.seek_by_policy(self._running(), partitions, "earliest")

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Waits for records after the last; all partitions unless some are named."""
        operations.seek_by_policy(self._running(), partitions, "latest")

    def pause(self, *partitions: TopicPartition) -> None:
        """Polls pass over these until they are resumed."""
        operations.pause(self._running(), partitions, is_paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Polls return these again."""
        operations.pause(self._running(), partitions, is_paused=False)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """What polls pass over."""
        return operations.paused(self._running())

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets between the position and the end as last heard of."""
        return operations.lag(self._running(), partition)

    # --- committing

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commits and waits; by default everything that polls have returned."""
        await self._running().committing.commit(operations.full_offsets(offsets))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commits in the background; `callback` hears what came of it."""
        self._running().committing.commit_in_background(operations.full_offsets(offsets), callback)

    async def committed(
        self, *partitions: TopicPartition
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed, for those of the partitions where it has."""
        return await operations.committed(self._running(), partitions)

    @property
    def place(self) -> GroupPlace:
        """Who this consumer is in its group: what a transaction's `send_offsets` needs."""
        return self._running().place

    # --- looking things up

    async def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """The first offset of each."""
        return await operations.beginning_offsets(self._running(), partitions)

    async def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """The offset after the last record of each."""
        return await operations.end_offsets(self._running(), partitions)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record at or after a timestamp (ms) in each; None where there is none."""
        return await operations.offsets_for_times(self._running(), timestamps)

    async def partitions_for(self, topic: str) -> TopicInfo:
        """The topic with its partitions and their leaders."""
        return await operations.partitions_for(self._running(), topic)

    async def topics(self) -> list[TopicInfo]:
        """All topics but the broker's own."""
        return await operations.topics(self._running())

    def metrics(self) -> ConsumerMetrics:
        """What was done so far, in numbers."""
        return self._running().metrics()

    def _running(self) -> ConsumerCore:
        if self._core is None:
            raise ClientClosed("consumer", "was not started: use it as a context, or call start")
        return self._core
