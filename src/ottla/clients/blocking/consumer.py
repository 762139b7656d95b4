"""The consumer for threads and scripts. One thread at a time uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ottla.clients.arrow.columns import COLUMNS
from ottla.clients.arrow.polling import ArrowPoll, plan_poll, table_of
from ottla.clients.blocking.loop_thread import LoopThread, close_at_exit
from ottla.clients.consumer import operations
from ottla.clients.consumer.committing import CommitCallback
from ottla.clients.consumer.core import ConsumerCore
from ottla.clients.consumer.group_place import GroupPlace, OffsetAndMetadata
from ottla.clients.consumer.interceptors import ConsumerInterceptor
from ottla.clients.consumer.listener import RebalanceListener
from ottla.clients.consumer.metrics import ConsumerMetrics
from ottla.clients.consumer.plan import ConsumerPlan, plan_consumer
from ottla.clients.consumer.record import ConsumerRecord
from ottla.clients.consumer.subscription import TakenBatches, Wanted
from ottla.clients.consumer.unreadable import UNREADABLE, OnError, Unreadable
from ottla.clients.failures import ClientClosed
from ottla.clients.metadata import TopicInfo
from ottla.clients.offsets import ListedOffset
from ottla.clients.producer.core import with_bootstrap
from ottla.clients.serializers import Choice
from ottla.clients.settings_source import Config
from ottla.errors import ConfigError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow

ITERATION_WAIT_S = 1.0

T = TypeVar("T")


class Consumer:
    """Reads records, alone or in a group.

    `with Consumer("topic", bootstrap_servers="host:9092", group_id="g") as consumer:` and then
    `for record in consumer` or `consumer.poll()`. Settings are keywords, or Kafka's own names in
    `config`: a mapping or the path of a properties file.
    """

    __slots__ = ("__weakref__", "_core", "_loop")

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
        if iscoroutinefunction(on_error):
            raise ConfigError("on_error", "is a coroutine function", "give a plain one, or use aio")
        plan = plan_consumer(
            config,
            with_bootstrap(settings, bootstrap_servers),
            deserializers=(key_deserializer, value_deserializer),
            interceptors=interceptors,
            on_error=on_error,
        )
        self._loop = LoopThread("consumer")
        try:
            self._core = self._loop.run(_open(plan, self._loop, topics))
        except BaseException:
            self._loop.stop()
            raise
        close_at_exit(self)

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Commits, if that is on, leaves the group and disconnects. Once is enough."""
        if self._loop.is_foreign:
            return
        try:
            self._loop.run(self._core.close(timeout_s))
        except ClientClosed:
            return
        self._loop.stop()

    def disown(self) -> None:
        """Called in a forked process, which cannot use its parent's."""
        self._core.group.needs_attention = True

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- what to read

    def subscribe(self, topics: Wanted, listener: RebalanceListener | None = None) -> None:
        """Reads topics by name, re.Pattern or SubscriptionPattern, as the group shares them out.

        The listener is called in the thread that polls, inside `poll` and `close`.
        """
        names = [topics] if isinstance(topics, str) else topics
        self._call(lambda: self._core.subscribe(names, listener))

    def unsubscribe(self) -> None:
        """Reads nothing any more, and leaves the group."""
        self._loop.run(self._core.unsubscribe())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these, whatever others read."""
        self._call(lambda: self._core.assign(partitions))

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What is read now."""
        return self._core.group.owned()

    # --- reading

    def poll(
        self, timeout_s: float = 1.0, *, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Records as soon as there are some; an empty list after `timeout_s`.

        At a record that cannot be read it raises UnreadableRecord, or UnreadableBatch, every time
        until `skip` or `seek`; the records before it were returned, and none behind it is lost.
        """
        core = self._core
        try:
            if not core.needs_attention and (records := core.reader.take(max_records)):
                return records
        except UNREADABLE as error:
            self._loop.run(core.reader.met(error))
        return self._loop.run(core.poll(timeout_s, max_records))

    def poll_arrow(
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
        core = self._core
        wanted = plan_poll(max_records, max_bytes, columns)
        while True:
            found = self._batches(core, timeout_s, wanted)
            try:
                return table_of(core, found, wanted)
            except UNREADABLE as error:
                self._loop.run(core.reader.met(error))

    def _batches(
        self, core: ConsumerCore, timeout_s: float, wanted: ArrowPoll
    ) -> list[TakenBatches]:
        try:
            if not core.needs_attention and (found := core.reader.take_batches(*wanted.limits)):
                return found
        except UNREADABLE as error:
            self._loop.run(core.reader.met(error))
        return self._loop.run(core.poll_batches(timeout_s, *wanted.limits))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Every record, for ever; a loop that follows another goes on where that one stopped."""
        subscription = self._core.subscription
        while True:
            yield from subscription.iterated
            subscription.iterated = iter(self.poll(ITERATION_WAIT_S))

    def __next__(self) -> ConsumerRecord:
        return next(iter(self))

    # --- positions

    def position(self, partition: TopicPartition) -> int:
        """The offset the next poll begins with."""
        return self._loop.run(operations.position(self._core, partition))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll returns records from this offset on."""
        self._call(lambda: operations.seek(self._core, partition, offset))

    def skip(self, error: Unreadable) -> None:
        """Goes on behind what `poll` could not read; nothing happens if it is elsewhere already."""
        self._call(lambda: self._core.reader.skip(error))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Begins with the first record; all partitions unless some are named."""
        self._call(lambda: operations.seek_by_policy(self._core, partitions, "earliest"))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Waits for records after the last; all partitions unless some are named."""
        self._call(lambda: operations.seek_by_policy(self._core, partitions, "latest"))

    def pause(self, *partitions: TopicPartition) -> None:
        """Polls pass over these until they are resumed."""
        self._call(lambda: operations.pause(self._core, partitions, is_paused=True))

    def resume(self, *partitions: TopicPartition) -> None:
        """Polls return these again."""
        self._call(lambda: operations.pause(self._core, partitions, is_paused=False))

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """What polls pass over."""
        return operations.paused(self._core)

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets between the position and the end as last heard of."""
        return operations.lag(self._core, partition)

    # --- committing

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commits and waits; by default everything that polls have returned."""
        self._loop.run(self._core.committing.commit(operations.full_offsets(offsets)))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commits in the background; `callback` hears of it in the consumer's own thread."""
        full = operations.full_offsets(offsets)
        self._call(lambda: self._core.committing.commit_in_background(full, callback))

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed, for those of the partitions where it has."""
        return self._loop.run(operations.committed(self._core, partitions))

    @property
    def place(self) -> GroupPlace:
        """Who this consumer is in its group: what a transaction's `send_offsets` needs."""
        return self._core.place

    # --- looking things up

    def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """The first offset of each."""
        return self._loop.run(operations.beginning_offsets(self._core, partitions))

    def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """The offset after the last record of each."""
        return self._loop.run(operations.end_offsets(self._core, partitions))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record at or after a timestamp (ms) in each; None where there is none."""
        return self._loop.run(operations.offsets_for_times(self._core, timestamps))

    def partitions_for(self, topic: str) -> TopicInfo:
        """The topic with its partitions and their leaders."""
        return self._loop.run(operations.partitions_for(self._core, topic))

    def topics(self) -> list[TopicInfo]:
        """All topics but the broker's own."""
        return self._loop.run(operations.topics(self._core))

    def metrics(self) -> ConsumerMetrics:
        """What was done so far, in numbers."""
        return self._core.metrics()

    def _call(self, function: Callable[[], T]) -> T:
        """Calls a function on the loop and waits for it."""

        async def call() -> T:
            return function()

        return self._loop.run(call())


async def _open(plan: ConsumerPlan, loop: LoopThread, topics: tuple[str, ...]) -> ConsumerCore:
    core = ConsumerCore(plan, loop.call_soon)
    try:
        await core.start()
        if topics:
            core.subscribe(topics, None)
    except BaseException:
        await core.close(0.0)
        raise
    return core
