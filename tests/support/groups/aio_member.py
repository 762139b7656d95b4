"""A group member on aiokafka, which rebalances in a task beside the one that reads."""

import asyncio
from collections.abc import Callable, Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from support.groups.membership import MemberOptions, Membership
from support.journal import now_ns

POLL_MS = 100


class AioMember(ConsumerRebalanceListener):
    """Reads in one task; partitions are given up in another, under the same lock as commits."""

    def __init__(self, options: MemberOptions, membership: Membership) -> None:
        assert options.strategy == "range", "aiokafka has no cooperative assignor"
        self._options = options
        self._membership = membership
        self._lock = asyncio.Lock()

    def run(self, is_over: Callable[[], bool]) -> None:
        asyncio.run(self._run(is_over))

    async def _run(self, is_over: Callable[[], bool]) -> None:
        options = self._options
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=options.bootstrap,
            client_id=options.name,
            group_id=options.group,
            group_instance_id=options.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            rebalance_timeout_ms=20_000,
            fetch_max_wait_ms=100,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        self._consumer.subscribe([options.topic], listener=self)
        await self._consumer.start()
        try:
            while not is_over():
                await self._read_and_commit()
        finally:
            await self._consumer.stop()
            # stop() leaves the group without telling the listener
            owned = set(self._membership.owned)
            self._membership.given_up(owned, self._generation(), is_lost=False)

    async def _read_and_commit(self) -> None:
        batches = await self._consumer.getmany(timeout_ms=POLL_MS)
        async with self._lock:
            for place, records in batches.items():
                if place.partition in self._membership.owned:  # it may be given up by now
                    for record in records:
                        self._membership.read(place.partition, record.offset)
            self._membership.write_records()
            await self._commit()

    async def _commit(self) -> None:
        positions = dict(self._membership.uncommitted)
        if not positions:
            return
        generation, since_ns = self._generation(), now_ns()
        wanted = {
            TopicPartition(self._options.topic, partition): position
            for partition, position in positions.items()
        }
        try:
            await self._consumer.commit(wanted)
        except KafkaError as error:
            self._membership.refused(positions, generation, repr(error))
        else:
            self._membership.committed(positions, generation, since_ns)

    def _generation(self) -> int:
        return int(getattr(self._consumer._coordinator, "generation", -1))

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._membership.assigned([one.partition for one in assigned], self._generation())

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        async with self._lock:
            is_lost = self._generation() < 0
            if not is_lost:
                await self._commit()
            numbers = [one.partition for one in revoked]
            self._membership.given_up(numbers, self._generation(), is_lost=is_lost)
