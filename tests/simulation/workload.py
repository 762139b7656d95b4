"""Programs of clients, as people would write them; each writes down what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from ottla.aio import Consumer, Producer
from ottla.clients.failures import Fenced
from ottla.clients.producer.batch import RecordMetadata
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition
from simulation.history import History, Sent, Transaction
from simulation.loop import Process
from simulation.plan import Plan
from simulation.world import World

GROUP = "group"
PATIENCE: dict[str, object] = {
    "request_timeout_ms": 5_000,
    "socket_connection_setup_timeout_ms": 2_000,
    "metadata_max_age_ms": 10_000,
}
KINDS: dict[str, dict[str, object]] = {
    "idempotent": {"acks": "all", "linger_ms": 1},
    "plain": {"acks": "all", "enable_idempotence": False},
    "leader-only": {"acks": "1", "enable_idempotence": False},
    "transactional": {"acks": "all", "transaction_timeout_ms": 8_000},
}
AGAIN_SECONDS = 0.2


class Workload:
    """The clients of a world. A program that is killed is started again as a new one."""

    def __init__(self, world: World, plan: Plan, history: History) -> None:
        self._world = world
        self._plan = plan
        self._history = history
        self._lives: dict[str, int] = {}
        self._running: dict[str, tuple[Process, Callable[[str], Coroutine[Any, Any, None]]]] = {}
        self._unfinished: dict[str, None] = {}
        self.places = [
            TopicPartition(topic, partition)
            for topic, count in plan.topics.items()
            for partition in range(count)
        ]

    def start(self) -> None:
        for number, kind in enumerate(self._plan.producers):
            name = f"{kind}-{number}"
            if kind == "transactional":
                self._start(name, lambda life, name=name: self._transact(life, name))
            else:
                self._start(name, lambda life, kind=kind: self._produce(life, kind))
        for number in range(self._plan.members):
            self._start(f"member-{number}", self._consume)

    @property
    def names(self) -> list[str]:
        return list(self._running)

    @property
    def unfinished(self) -> list[str]:
        """Programs that have not ended yet."""
        return list(self._unfinished)

    def kill(self, name: str) -> None:
        """The client's machine resets its connections; another life begins at once."""
        process, program = self._running[name]
        self._world.note(name, "is killed")
        process.is_dead = True
        self._world.network.kill(process)
        self._start(name, program)

    def _start(self, name: str, program: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        life = self._lives[name] = self._lives.get(name, 0) + 1

        async def run() -> None:
            await program(f"{name}.{life}")
            self._unfinished.pop(name, None)

        self._unfinished[name] = None
        self._running[name] = (self._world.in_process(name, run), program)

    # --- producing ---

    async def _produce(self, life: str, kind: str) -> None:
        chance, history = self._world.chance(life), self._history
        pause = chance.choice((0.1, 0.3, 0.6))
        while not history.is_over:
            try:
                async with Producer(
                    self._world.bootstrap,
                    delivery_timeout_ms=chance.choice((6_000, 20_000)),
                    max_block_ms=5_000,
                    **KINDS[kind],
                    **PATIENCE,
                ) as producer:
                    while not history.is_over:
                        await self._send(producer, life, kind, chance)
                        await asyncio.sleep(pause * chance.random())
            except OttlaError as error:
                self._world.note(life, repr(error))
                await asyncio.sleep(AGAIN_SECONDS)

    async def _send(
        self,
        producer: Producer,
        life: str,
        kind: str,
        chance: Random,
        transaction: Transaction | None = None,
    ) -> None:
        sent = self._history.send(life, chance.choice(self.places), kind, transaction)

        def told(metadata: RecordMetadata | None, _error: OttlaError | None) -> None:
            if metadata is not None:
                self._history.acknowledge(sent, metadata.offset)

        await producer.send(
            sent.place.topic,
            sent.value,
            key=str(chance.randrange(5)).encode(),
            partition=sent.place.partition,
            on_delivery=told,
        )

    async def _transact(self, life: str, name: str) -> None:
        chance, history = self._world.chance(life), self._history
        while not history.is_over:
            try:
                async with Producer(
                    self._world.bootstrap,
                    transactional_id=name,
                    delivery_timeout_ms=7_000,
                    max_block_ms=8_000,
                    **KINDS["transactional"],
                    **PATIENCE,
                ) as producer:
                    while not history.is_over:
                        await self._one_transaction(producer, life, chance)
                        await asyncio.sleep(0.6 * chance.random())
            except OttlaError as error:
                self._world.note(life, repr(error))
                await asyncio.sleep(AGAIN_SECONDS)

    async def _one_transaction(self, producer: Producer, life: str, chance: Random) -> None:
        transaction = Transaction()
        wanted = chance.randint(1, 6)
        self._history.transactions.append(transaction)
        producer.begin_transaction()
        try:
            while len(transaction.records) < wanted:
                await self._send(producer, life, "transactional", chance, transaction)
                await asyncio.sleep(0.05 * chance.random())
            if chance.random() < 0.3:
                transaction.state = "aborting"
                await producer.abort_transaction()
                transaction.state = "aborted"
                return
            transaction.state = "committing"
            await producer.commit_transaction()
            transaction.state = "committed"
        except Fenced:
            raise
        except OttlaError as error:
            self._world.note(life, transaction.state, repr(error))
            await producer.abort_transaction()

    # --- consuming ---

    async def _consume(self, life: str) -> None:
        chance, history = self._world.chance(life), self._history
        while not history.is_over:
            try:
                async with Consumer(
                    *self._plan.topics,
                    bootstrap_servers=self._world.bootstrap,
                    group_id=GROUP,
                    group_protocol=self._plan.group_protocol,
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                    isolation_level=chance.choice(("read_committed", "read_uncommitted")),
                    **({} if self._plan.group_protocol == "consumer" else CLASSIC),
                    **PATIENCE,
                ) as consumer:
                    while not history.is_over:
                        await self._poll(consumer)
            except OttlaError as error:
                self._world.note(life, repr(error))
                await asyncio.sleep(AGAIN_SECONDS)

    async def _poll(self, consumer: Consumer) -> None:
        records = await consumer.poll(0.5)
        offsets: dict[TopicPartition, int] = {}
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            self._history.read(place, record.offset, record.value)
            offsets[place] = record.offset + 1
        if offsets:
            await consumer.commit(offsets)
            self._history.commit(offsets)


CLASSIC: dict[str, object] = {"session_timeout_ms": 4_000, "heartbeat_interval_ms": 1_000}


def kept(sent: Sent) -> bool:
    """Whether the record must be there in the end."""
    if sent.kind == "leader-only" or sent.offset is None:
        return False
    return sent.transaction is None
