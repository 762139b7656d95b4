"""A coordinator with its log, partitions, a network that delays and repeats, and a clock.

The runtime's duties are kept to the letter: records are replayed when they are appended; replies
and markers wait until everything appended before them is committed. A failover loses what was not
committed. All choices come from one seeded generator, so a seed is a whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ottla.coordination.decision import NewRecord, Reply, StartTimer, Ticket
from ottla.coordination.transaction.decision import TransactionDecision, WriteMarkers
from ottla.coordination.transaction.records import record_of, transactional_id_of
from ottla.coordination.transaction.shard import TransactionShard
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import TIMEOUT_NEVER_MS, Producer, Transaction
from ottla.errors import ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.settings.coordination import TransactionSettings
from properties.coordination.transaction.partition_model import PartitionModel

TIMEOUT_MS = 20_000
SETTINGS = TransactionSettings(
    transactional_id_expiration_ms=60_000, transaction_two_phase_commit_enable=True
)


class World:
    """Everything around the clients of one run."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.now_ms = 1_000_000
        self.failure_rate = self.rng.choice([0.0, 0.05])
        self.partitions = {TopicPartition("t", each): PartitionModel() for each in range(3)}
        self.coordinator_epoch = 0
        self.shard = TransactionShard(SETTINGS, 0)
        self.log: list[NewRecord] = []
        self.committed = 0
        self.uncommitted: list[tuple[int, tuple[Reply, ...], tuple[WriteMarkers, ...]]] = []
        self.waiting: dict[Ticket, Callable[[Any], None]] = {}
        self.network: list[Callable[[], None]] = []
        self.flying: list[tuple[WriteMarkers, TopicPartition]] = []
        self.reports: list[tuple[WriteMarkers, TopicPartition]] = []
        self.delivered: set[tuple[WriteMarkers, TopicPartition]] = set()
        self.latest: dict[str, WriteMarkers] = {}
        self.forgotten: set[str] = set()
        self.timers: set[tuple[str, ...]] = set()
        self._tickets = iter(range(1, 10**9))
        self._producer_ids = iter(range(1_000, 10**9))

    # --- the runtime -----------------------------------------------------------------------------

    def call(
        self, decide: Callable[[Ticket], TransactionDecision], on_reply: Callable[[Any], None]
    ) -> None:
        """Put a request to the coordinator; the reply is None if its coordinator is lost."""
        ticket = Ticket(next(self._tickets))
        self.waiting[ticket] = on_reply
        self.do(decide(ticket))

    def do(self, decision: TransactionDecision) -> None:
        if decision.records and self.rng.random() < self.failure_rate:
            decision = self.shard.append_failed(decision, ErrorCode.NOT_ENOUGH_REPLICAS)
            assert not decision.records
        for record in decision.records:
            self.log.append(record)
            self.shard.replay(record.key, record.value)
        self.timers.update(each.key for each in decision.timers if isinstance(each, StartTimer))
        self.uncommitted.append((len(self.log), decision.replies, decision.markers))

    def commit(self, count: int) -> None:
        """The oldest `count` decisions are committed, and what rests on them happens."""
        done, self.uncommitted = self.uncommitted[:count], self.uncommitted[count:]
        for end, replies, markers in done:
            self.committed = end
            self.flying += [(each, partition) for each in markers for partition in each.partitions]
            self.latest.update({each.transactional_id: each for each in markers})
            for reply in replies:
                self.waiting.pop(reply.ticket)(reply.response)

    def fail_over(self) -> None:
        """The coordinator is lost with all that was not committed, and another takes over."""
        self.check_replay()
        lost, self.uncommitted = self.uncommitted, []
        del self.log[self.committed :]
        self.coordinator_epoch += 1
        self.timers.clear()
        self.shard = self._replayed(self.coordinator_epoch)
        self.do(self.shard.on_loaded(self.now_ms))
        for _, replies, _ in lost:
            for reply in replies:
                self.waiting.pop(reply.ticket)(None)

    def check_replay(self) -> None:
        """A coordinator that reads the log knows what the live one knows."""
        replayed = self._replayed(self.coordinator_epoch)
        assert replayed._transactions == self.shard._transactions
        assert replayed._ongoing == self.shard._ongoing

    def _replayed(self, coordinator_epoch: int) -> TransactionShard:
        shard = TransactionShard(SETTINGS, coordinator_epoch)
        for record in self.log:
            shard.replay(record.key, record.value)
        return shard

    def fresh(self, transactional_id: str) -> ProducerId | None:
        needed = self.shard.needs_producer_id(transactional_id)
        return ProducerId(next(self._producer_ids)) if needed else None

    def begin_at(self, transactional_id: str, epoch: int) -> None:
        """The log already knows the id, with its epochs nearly used up."""
        producer = Producer(ProducerId(next(self._producer_ids)), ProducerEpoch(epoch))
        known = Transaction(transactional_id, producer, TIMEOUT_MS, self.now_ms)
        self.do(TransactionDecision((record_of(known),)))

    # --- what may happen next --------------------------------------------------------------------

    def send(self, message: Callable[[], None], *, may_repeat: bool) -> None:
        """Put a message on the network, where it may wait for long, and come twice."""
        self.network.append(message)
        if may_repeat and self.rng.random() < 0.15:
            self.network.append(message)

    def deliver_message(self) -> None:
        if self.network:
            # Mostly in order; at times one is left behind for long.
            latest = min(3, len(self.network))
            index = self.rng.randrange(latest)
            self.network.pop(index)()

    def deliver_marker(self) -> None:
        if self.flying:
            index = self.rng.randrange(len(self.flying))
            markers, partition = self.flying[index]
            is_repeated = markers.transaction_version >= 2 and self.rng.random() < 0.2
            if not is_repeated:
                self.flying.pop(index)
            self.partitions[partition].write_marker(markers)
            self.delivered.add((markers, partition))
            self.reports.append((markers, partition))

    def deliver_report(self) -> None:
        if self.reports:
            index = self.rng.randrange(len(self.reports))
            markers, partition = self.reports[index]
            if self.rng.random() < 0.8:
                self.reports.pop(index)
            decision = self.shard.markers_written(markers, [partition], self.now_ms)
            if decision.records:
                self.check_all_marked(markers.transactional_id)
            self.do(decision)

    def fire_timer(self) -> None:
        if self.timers:
            key = min(self.timers)
            self.timers.discard(key)
            self.do(self.shard.timer_fired(key, self.now_ms))

    def commit_some(self) -> None:
        self.commit(self.rng.randint(0, len(self.uncommitted)))

    def pass_time(self) -> None:
        self.now_ms += self.rng.choice([10, 1_000, TIMEOUT_MS // 2, TIMEOUT_MS])
        self.tick()

    def tick(self) -> None:
        self.do(self.shard.abort_timed_out(self.now_ms))
        decision = self.shard.expire_transactional_ids(self.now_ms)
        self.forgotten.update(transactional_id_of(each.key) or "" for each in decision.records)
        self.do(decision)

    def settle(self) -> None:
        """Faults end, all that is under way arrives, and time passes."""
        self.failure_rate = 0.0
        self.deliver_all()
        self.now_ms += TIMEOUT_MS + 1
        self.tick()
        self.deliver_all()

    def deliver_all(self) -> None:
        while self.uncommitted or self.network or self.flying or self.reports or self.timers:
            self.commit(len(self.uncommitted))
            self.deliver_message()
            self.deliver_marker()
            self.deliver_report()
            self.fire_timer()

    def check_all_marked(self, transactional_id: str) -> None:
        """A transaction is complete only when each of its partitions has its marker."""
        markers = self.latest[transactional_id]
        missing = [each for each in markers.partitions if (markers, each) not in self.delivered]
        assert not missing, f"{transactional_id} is complete without {missing}"

    def check_nothing_hangs(self) -> None:
        """Every transaction is over, save those that wait for their owner's decision."""
        waits = set()
        for transaction in self.shard._transactions.values():
            if transaction.timeout_ms == TIMEOUT_NEVER_MS and transaction.state is State.ONGOING:
                waits.add(transaction.producer.producer_id)
            else:
                assert transaction.state.is_idle, transaction
        for partition in self.partitions.values():
            _, still_open = partition.outcomes()
            assert {data.producer.producer_id for data in still_open} <= waits, still_open
