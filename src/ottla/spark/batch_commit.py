"""A micro-batch into its topics in one transaction, with its entry in the ledger; or not at all.

    is it in the ledger? ─ yes → done
    take the transactional id over: fences whoever had it, and ends what they left open
    is it in the ledger now? ─ yes → done
    append the records │ note the batch in the ledger │ end the transaction

Invariants:
1. The ledger is read after the name is taken over: nobody else can add to it from then on.
2. Records and ledger entry are in the same transaction, so a batch that is done again finds out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.clients.client import Client
from ottla.clients.connection_settings import client_for
from ottla.clients.consumer.group_place import GroupPlace
from ottla.clients.group_offsets import committed_offsets
from ottla.clients.producer.settings import ProducerSettings
from ottla.clients.producer.transaction import Phase, Transaction
from ottla.errors import ErrorCode, OttlaError, RequestFailed
from ottla.model.ids import TopicPartition
from ottla.protocol.message import VERSION_MAX
from ottla.records.builder import ProducerStamp
from ottla.spark.batch_appender import EARLIER_TRANSACTIONS_VERSION, BatchAppender, Signature
from ottla.spark.consumed import Consumed
from ottla.spark.hand_over import forget
from ottla.spark.ledger import LedgerEntry, is_written
from ottla.spark.row_encoder import EncodedRun
from ottla.spark.sink_plan import SinkPlan

_NOT_ALLOWED: Final = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
)


class Outcome(Enum):
    """What became of a micro-batch."""

    WRITTEN = "written"
    WAS_WRITTEN = "was written before"


@dataclass(frozen=True, slots=True)
class Load:
    """A micro-batch that is ready to be written."""

    transactional_id: str
    runs: Sequence[EncodedRun]
    entry: LedgerEntry | None
    """None where it is not one of several that must not be repeated."""
    consumed: Consumed | None = None
    """What it was made of, where a group is to say so."""

    @property
    def topics(self) -> set[str]:
        """Those it writes to, or else those it was made of."""
        written = {run.where.topic for run in self.runs}
        return written or {where.topic for where in (self.consumed.ranges if self.consumed else ())}


async def commit_batch(plan: SinkPlan, load: Load) -> Outcome:
    """Writes the batch once, whoever has tried it before."""
    timeout_s = plan.producer.delivery_timeout_ms / 1000
    settings = plan.under(load.transactional_id, sum(run.size_bytes for run in load.runs))
    try:
        async with client_for(plan.connection, total_s=timeout_s) as client:
            return await BatchCommit(client, settings, load).run()
    except RequestFailed as error:
        raise _with_advice(error) from error
    finally:
        await asyncio.to_thread(forget, load.runs)


class BatchCommit:
    """One attempt. The methods are its steps, in order."""

    __slots__ = ("_client", "_load", "_settings", "_transaction", "_woken")

    def __init__(self, client: Client, settings: ProducerSettings, load: Load) -> None:
        self._client = client
        self._settings = settings
        self._load = load
        self._woken = asyncio.Event()
        self._transaction = Transaction(client, settings, self._woken.set)

    async def run(self) -> Outcome:
        """All steps; what was begun is aborted where one fails."""
        if await self._is_written(for_certain=False):  # then whoever is ahead is left in peace
            return Outcome.WAS_WRITTEN
        await self.take_over()
        if await self._is_written(for_certain=True):
            return Outcome.WAS_WRITTEN
        try:
            await self._check_consumed()
            await self.append()
            await self.note()
            await self.end()
        except BaseException:
            await self._abort()
            raise
        finally:
            await self._transaction.close()
        return Outcome.WRITTEN

    async def take_over(self) -> None:
        """From here on whoever had the name before is shut out."""
        await self._transaction.init()

    async def append(self) -> None:
        """Writes the records, undecided."""
        transaction = self._transaction
        transaction.begin()
        await self._enlist({run.where for run in self._load.runs})
        stamp = transaction.identity
        assert isinstance(stamp, ProducerStamp), "the name was taken over"
        by_writing = transaction.adds_by_writing
        signature = Signature(
            stamp,
            self._load.transactional_id,
            VERSION_MAX if by_writing else EARLIER_TRANSACTIONS_VERSION,
        )
        await BatchAppender(self._client, self._settings, signature).append(self._load.runs)

    async def note(self) -> None:
        """Puts the batch's number, and what it was made of, into the same transaction."""
        entry = self._load.entry
        if entry is not None:
            offsets = entry.note(self._load.topics)
            await self._transaction.send_offsets(offsets, GroupPlace(entry.group))
        consumed = self._load.consumed
        if consumed is not None:
            await self._transaction.send_offsets(consumed.note(), GroupPlace(consumed.group))

    async def end(self) -> None:
        """The decision: from here on the batch is written."""
        await self._transaction.end(is_commit=True)

    async def _is_written(self, *, for_certain: bool) -> bool:
        entry = self._load.entry
        return entry is not None and await is_written(self._client, entry, for_certain=for_certain)

    async def _check_consumed(self) -> None:
        consumed = self._load.consumed
        if consumed is not None:
            group = consumed.group
            consumed.check(
                await committed_offsets(self._client, group, waits_for_transactions=True)
            )

    async def _enlist(self, partitions: set[TopicPartition]) -> None:
        """Makes the partitions part of the transaction, where being written to does not."""
        while [where for where in partitions if not self._transaction.may_send(where)]:
            trouble = self._transaction.blocked()
            if trouble is not None:
                raise trouble
            self._woken.clear()
            self._transaction.request()
            await self._woken.wait()

    async def _abort(self) -> None:
        """Spares readers the wait for the time-out; a decision that was made stays."""
        if self._transaction.phase not in (Phase.OPEN, Phase.FAILED):
            return
        try:
            await self._transaction.end(is_commit=False)
        except OttlaError:
            pass  # the next attempt ends it, or its time-out does


def _with_advice(error: RequestFailed) -> RequestFailed:
    """Adds what to do to a refusal of transactions."""
    if error.code not in _NOT_ALLOWED:
        return error
    return RequestFailed(
        error.code,
        f"{error}; exactly-once delivery needs transactions here: have them allowed, or write "
        "with the option delivery=at-least-once",
    )
