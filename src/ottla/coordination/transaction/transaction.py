"""One transactional id: who holds it, what its transaction has touched, and the steps it can take.

A transaction is a value; a step gives the next one. Every field is in the log, so that a replayed
transaction equals the live one. Does not know requests, error codes or who may ask for a step:
that is in `init.py`, `adding.py` and `ending.py`.

Two pairs of producer id and epoch may matter at once:

- `producer` stands in the records of the transaction and in its markers;
- `holder` is the newest pair that was given out. It differs from `producer` when a prepared
  transaction was kept for its owner, and when a producer id ran out of epochs.

Invariants:
1. A client never gets an epoch above CLIENT_EPOCH_MAX; the one above it is left to fence its last.
2. `previous` names the pair that got its answer last, if that answer may have been lost; a retry
   with it is answered again. It is empty once somebody else took the id over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from ottla.coordination.transaction.state import VALID_PREVIOUS, State
from ottla.model.ids import NO_PRODUCER_ID, NO_TIMESTAMP, ProducerEpoch, ProducerId, TopicPartition

CLIENT_EPOCH_MAX: Final = 32766
TIMEOUT_NEVER_MS: Final = 2**31 - 1
"""The time-out of a transaction that waits for its owner's decision however long it takes."""

FIRST_VERSION: Final = 0
SECOND_VERSION: Final = 2
"""The version of the protocol that bumps the epoch with every transaction (KIP-890)."""


class Producer(msgspec.Struct, frozen=True):
    """A producer id with an epoch."""

    producer_id: ProducerId
    epoch: ProducerEpoch

    @property
    def is_exhausted(self) -> bool:
        """No further epoch of this producer id can be given to a client."""
        return self.epoch >= CLIENT_EPOCH_MAX

    def bumped(self) -> Producer:
        """The same producer id with the next epoch."""
        assert self.epoch <= CLIENT_EPOCH_MAX, "the fencing epoch was already used"
        return Producer(self.producer_id, ProducerEpoch(self.epoch + 1))


def first_of(producer_id: ProducerId) -> Producer:
    """A new producer id with its first epoch."""
    return Producer(producer_id, ProducerEpoch(0))


class Transaction(msgspec.Struct, frozen=True):
    """The state of one transactional id."""

    transactional_id: str
    producer: Producer
    timeout_ms: int
    updated_ms: int
    state: State = State.EMPTY
    next_producer: Producer | None = None
    """The holder, where it is not `producer`; takes its place when the transaction is complete."""
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIMESTAMP
    client_version: int = FIRST_VERSION

    @property
    def holder(self) -> Producer:
        """The newest pair that was given out, or will be next."""
        return self.next_producer or self.producer

    @property
    def previous(self) -> Producer | None:
        """The pair whose last answer may have been lost."""
        if self.previous_producer_id == NO_PRODUCER_ID:
            return None
        holder = self.holder
        # A producer id is only left for another one when its last epoch has been given out.
        same = self.previous_producer_id == holder.producer_id
        epoch = holder.epoch - 1 if same else CLIENT_EPOCH_MAX
        return Producer(self.previous_producer_id, ProducerEpoch(epoch))

    @property
    def is_kept(self) -> bool:
        """A prepared transaction was kept for its owner: it can be ended, not added to."""
        return self.state is State.ONGOING and self.next_producer is not None

    def is_timed_out(self, now_ms: int, since_ms: int) -> bool:
        """The transaction is open and has had its time, which began at `since_ms`."""
        return (
            self.state is State.ONGOING
            and self.timeout_ms != TIMEOUT_NEVER_MS
            and since_ms + self.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Nobody has used the id for so long that it may be forgotten."""
        return self.state.is_idle and self.updated_ms <= now_ms - expiration_ms

    def given_to(
        self, holder: Producer, *, previous_producer_id: ProducerId, timeout_ms: int, now_ms: int
    ) -> Transaction:
        """A producer starts anew with this pair."""
        return replace(
            self._entering(State.EMPTY),
            producer=holder,
            next_producer=None,
            previous_producer_id=previous_producer_id,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def added(
        self, partitions: Iterable[TopicPartition], *, client_version: int, now_ms: int
    ) -> Transaction:
        """The transaction, begun now unless it was under way, touches these partitions too."""
        return replace(
            self._entering(State.ONGOING),
            previous_producer_id=NO_PRODUCER_ID,
            partitions=self.partitions.union(partitions),
            started_ms=self.started_ms if self.state is State.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def kept_for(
        self, holder: Producer, *, previous_producer_id: ProducerId, timeout_ms: int, now_ms: int
    ) -> Transaction:
        """The open transaction stays as it is, and only this new holder may end it."""
        return replace(
            self._entering(State.ONGOING),
            next_producer=holder,
            previous_producer_id=previous_producer_id,
            # What waits for a decision elsewhere must not get a shorter life by being asked for.
            timeout_ms=max(self.timeout_ms, timeout_ms),
            updated_ms=now_ms,
        )

    def decided(
        self, *, is_commit: bool, holder: Producer, client_version: int, now_ms: int
    ) -> Transaction:
        """The holder ended the transaction, and goes on with this pair."""
        is_bumped = holder != self.holder
        marker = self.producer if holder == self.producer else self.producer.bumped()
        return replace(
            self._entering(State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT),
            producer=marker,
            next_producer=None if holder == marker else holder,
            previous_producer_id=self.holder.producer_id if is_bumped else NO_PRODUCER_ID,
            started_ms=self.started_ms if self.state is State.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, *, previous_producer_id: ProducerId, now_ms: int) -> Transaction:
        """The transaction is aborted without its holder, whose pair is worth nothing from now."""
        marker, holder = self.producer.bumped(), self.holder.bumped()
        return replace(
            self._entering(State.PREPARE_ABORT),
            producer=marker,
            next_producer=None if holder == marker else holder,
            previous_producer_id=previous_producer_id,
            updated_ms=now_ms,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker."""
        is_commit = self.state is State.PREPARE_COMMIT
        return replace(
            self._entering(State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT),
            producer=self.holder,
            next_producer=None,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _entering(self, state: State) -> Transaction:
        assert self.state in VALID_PREVIOUS[state], f"{self.state.name} before {state.name}"
        return replace(self, state=state)
