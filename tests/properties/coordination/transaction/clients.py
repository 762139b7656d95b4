"""Producers as the protocol's clients behave, and the book that is kept of what they were told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.coordination.decision import Caller, Ticket
from ottla.coordination.transaction.adding import Addition
from ottla.coordination.transaction.decision import TransactionDecision
from ottla.coordination.transaction.state import State
from ottla.coordination.transaction.transaction import CLIENT_EPOCH_MAX, Producer
from ottla.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from properties.coordination.transaction.partition_model import Data
from properties.coordination.transaction.world import TIMEOUT_MS, World

RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


@dataclass
class Book:
    """What clients asked for and were told, to be held against the partitions."""

    owner: dict[str, Client] = field(default_factory=dict)
    """The instance of each id that was the last to get its producer id."""
    open_tags: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """For each id the transactions that were begun, with the place in the log where each was."""
    commit_asked: set[int] = field(default_factory=set)
    told: dict[int, bool] = field(default_factory=dict)
    acknowledged: dict[int, set[int]] = field(default_factory=dict)
    outside: dict[int, bool] = field(default_factory=dict)
    """The outcomes that an outside database has decided, which ours must follow."""
    tags: dict[Producer, int] = field(default_factory=dict)
    take_overs: dict[str, int] = field(default_factory=dict)

    def check(self, world: World) -> None:
        """Hold what is in the partitions against what was asked and told."""
        outcomes: dict[int, set[bool]] = {}
        committed: dict[int, set[int]] = {}
        for partition in world.partitions.values():
            for data, is_commit in partition.outcomes()[0]:
                outcomes.setdefault(data.tag, set()).add(is_commit)
                if is_commit:
                    committed.setdefault(data.tag, set()).add(data.number)
        for tag, seen in outcomes.items():
            assert len(seen) == 1, f"transaction {tag} is torn"
            (is_commit,) = seen
            assert not is_commit or tag in self.commit_asked, f"nobody asked to commit {tag}"
            assert self.told.get(tag, is_commit) == is_commit, f"the client of {tag} was misled"
            assert self.outside.get(tag, is_commit) == is_commit, f"{tag} differs from outside"
        for tag, is_commit in self.told.items():
            if is_commit:
                assert self.acknowledged.get(tag, set()) <= committed.get(tag, set()), tag


class Client:
    """One instance of a producer; it may be overtaken by another and not know it."""

    def __init__(self, world: World, book: Book, transactional_id: str, kind: str) -> None:
        self.world = world
        self.book = book
        self.transactional_id = transactional_id
        self.is_second = kind != "first"
        self.is_two_phase = kind == "two-phase"
        self.producer: Producer | None = None
        self.tag: int | None = None
        self.wanted: bool | None = None
        """The outcome it is about to bring about."""
        self.again: tuple[TopicPartition, int] | None = None
        """The record whose fate it does not know, to be sent again."""
        self.is_busy = False
        self.is_dead = False
        self.took_over_at = 0

    def act(self) -> None:
        """Send the next request, unless one is under way."""
        rng = self.world.rng
        if self.is_dead or self.is_busy:
            return
        if self.producer is None:
            self.init(None)
        elif self.again is not None:
            self.produce(*self.again)
        elif self.wanted is not None:
            self.end(is_commit=self.wanted)
        elif self.tag is None and rng.random() < 0.1:
            self.init(self.producer)
        elif self.tag is not None and rng.random() < 0.4:
            self.end(is_commit=rng.random() < 0.7)
        else:
            partition = rng.choice(sorted(self.world.partitions))
            self.produce(partition, rng.getrandbits(60))

    def _send(self, deliver: Callable[[Callable[[Any], None]], None], then: Any) -> None:
        """Send a request whose first answer counts."""
        self.is_busy = True
        is_answered = False

        def answer(response: Any) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self.is_busy = False
                then(response)

        # Where requests may be repeated after their answer the first version is not safe (KIP-890).
        self.world.send(lambda: deliver(answer), may_repeat=self.is_second)

    # --- InitProducerId --------------------------------------------------------------------------

    def init(self, expected: Producer | None) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=expected.producer_id if expected else -1,
            producer_epoch=expected.epoch if expected else -1,
            enable2_pc=self.is_two_phase,
            keep_prepared_txn=self.is_two_phase,
        )
        caller = Caller("c", "h", 6 if self.is_two_phase else 5)

        def deliver(answer: Callable[[Any], None]) -> None:
            world = self.world
            new_id = world.fresh(self.transactional_id)
            if expected is None:
                count = self.book.take_overs.get(self.transactional_id, 0) + 1
                self.book.take_overs[self.transactional_id] = self.took_over_at = count
            world.call(
                lambda ticket: world.shard.init_producer_id(
                    request, caller, ticket, world.now_ms, new_id
                ),
                answer,
            )

        # An InitProducerId that comes again later takes the id over again; a connection's does not.
        self.is_busy = True
        self.world.send(lambda: deliver(self.on_init), may_repeat=False)

    def on_init(self, response: Any) -> None:
        self.is_busy = False
        code = ErrorCode.NOT_COORDINATOR if response is None else ErrorCode(response.error_code)
        if code in RETRIABLE:
            return
        if code is not ErrorCode.NONE:
            self.die()
            return
        self.producer = Producer(response.producer_id, response.producer_epoch)
        self.book.owner[self.transactional_id] = self
        if response.ongoing_txn_producer_id != -1:
            prepared = Producer(
                response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
            )
            self.tag = self.book.tags[prepared]
            self.wanted = self.book.outside.setdefault(self.tag, False)

    # --- producing -------------------------------------------------------------------------------

    def produce(self, partition: TopicPartition, number: int) -> None:
        assert self.producer is not None
        if self.tag is None:
            self.tag = self.world.rng.getrandbits(60)
            self.book.tags[self.producer] = self.tag
        self.again = partition, number
        data = Data(self.producer, self.tag, number)
        self._send(lambda answer: self._add(partition, data, answer), self.on_produced)
        if self.is_second and self.world.rng.random() < 0.3:
            self._let_another_process_write()

    def _let_another_process_write(self) -> None:
        """A process that shares the producer id and epoch writes to a partition of its own."""
        assert self.producer is not None
        assert self.tag is not None
        rng = self.world.rng
        partition = rng.choice(sorted(self.world.partitions))
        data = Data(self.producer, self.tag, rng.getrandbits(60))
        self.world.send(lambda: self._add(partition, data, lambda _: None), may_repeat=True)

    def _add(
        self, partition: TopicPartition, data: Data, answer: Callable[[ErrorCode], None]
    ) -> None:
        """The partition's leader (or the old client) asks the coordinator to add it."""
        addition = self._addition(partition, data, 5 if self.is_second else 3)

        def decide(ticket: Ticket) -> TransactionDecision:
            world = self.world
            before = world.shard._transactions.get(self.transactional_id)
            decision = world.shard.add_partitions(addition, ticket, world.now_ms)
            if decision.records and before is not None and before.state is not State.ONGOING:
                begun = self.book.open_tags.setdefault(self.transactional_id, [])
                begun.append((len(world.log), data.tag))
            return decision

        def added(response: Any) -> None:
            if (code := _code_of(response)) is not ErrorCode.NONE:
                answer(code)
            elif self.is_second:
                self.world.network.append(lambda: answer(self._append(partition, data)))
            else:
                self.world.send(lambda: self._verify(partition, data, answer), may_repeat=False)

        self.world.call(decide, added)

    def _verify(
        self, partition: TopicPartition, data: Data, answer: Callable[[ErrorCode], None]
    ) -> None:
        """A record of the first version is verified; an end that comes in between spoils it."""
        guard = self.world.partitions[partition].guard(data.producer)

        def verified(response: Any) -> None:
            if (code := _code_of(response)) is not ErrorCode.NONE:
                answer(code)
                return

            def append() -> None:
                is_spoilt = guard != self.world.partitions[partition].guard(data.producer)
                spoilt = ErrorCode.TRANSACTION_ABORTABLE
                answer(spoilt if is_spoilt else self._append(partition, data))

            self.world.network.append(append)

        addition = self._addition(partition, data, 4)
        self.world.call(
            lambda ticket: self.world.shard.verify_partitions(addition, ticket), verified
        )

    def _append(self, partition: TopicPartition, data: Data) -> ErrorCode:
        if not self.world.partitions[partition].append(data):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.book.acknowledged.setdefault(data.tag, set()).add(data.number)
        return ErrorCode.NONE

    def _addition(self, partition: TopicPartition, data: Data, version: int) -> Addition:
        producer = data.producer
        return Addition(
            self.transactional_id, producer.producer_id, producer.epoch, (partition,), version
        )

    def on_produced(self, code: ErrorCode) -> None:
        if code in RETRIABLE:
            return
        self.again = None
        if code is not ErrorCode.NONE:
            self.wanted = False

    # --- EndTxn ----------------------------------------------------------------------------------

    def end(self, *, is_commit: bool) -> None:
        assert self.producer is not None
        assert self.tag is not None
        if self.is_two_phase:
            is_commit = self.book.outside.setdefault(self.tag, is_commit)
        if is_commit:
            self.book.commit_asked.add(self.tag)
        self.wanted = is_commit
        tag, producer = self.tag, self.producer
        request = EndTxnRequest(
            self.transactional_id, producer.producer_id, producer.epoch, is_commit
        )

        def decide(ticket: Ticket) -> TransactionDecision:
            return self._decide_end(request, tag, ticket)

        self._send(lambda answer: self.world.call(decide, answer), self.on_ended)

    def _decide_end(self, request: EndTxnRequest, tag: int, ticket: Ticket) -> TransactionDecision:
        world, transactional_id = self.world, self.transactional_id
        before = world.shard._transactions.get(transactional_id)
        caller = Caller("c", "h", 5 if self.is_second else 4)
        spare = world.fresh(transactional_id)
        decision = world.shard.end_txn(request, caller, ticket, world.now_ms, spare)
        if decision.records and before is not None and before.state is State.ONGOING:
            begun = [
                each for each in self.book.open_tags[transactional_id] if each[0] < len(world.log)
            ]
            assert begun[-1][1] == tag, "a request ended another transaction than its own"
            if request.committed:
                assert self.book.owner[transactional_id] is self, "a zombie committed"
        return decision

    def on_ended(self, response: Any) -> None:
        code = ErrorCode.NOT_COORDINATOR if response is None else ErrorCode(response.error_code)
        assert self.tag is not None
        if code in RETRIABLE:
            return
        if code is ErrorCode.NONE:
            assert self.wanted is not None
            self.book.told[self.tag] = self.wanted
            if self.is_second:
                self.producer = Producer(response.producer_id, response.producer_epoch)
            self.tag = self.wanted = None
        elif code is ErrorCode.INVALID_TXN_STATE and self.wanted and self.is_second:
            assert not self.is_two_phase, "a prepared transaction was aborted"
            self.wanted = False
        else:
            self.die()

    def die(self) -> None:
        """Give up on a fatal error, which in the second version must have a reason."""
        self.is_dead = True
        assert self.producer is not None
        is_overtaken = self.book.take_overs[self.transactional_id] > self.took_over_at
        is_forgotten = self.transactional_id in self.world.forgotten
        is_last_epoch = self.producer.epoch == CLIENT_EPOCH_MAX and self.wanted is False
        assert not self.is_second or is_overtaken or is_forgotten or is_last_epoch


def _code_of(response: Any) -> ErrorCode:
    if response is None:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode(response.topic_results[0].results_by_partition[0].partition_error_code)
