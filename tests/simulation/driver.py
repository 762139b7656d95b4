"""Tells the story of a seed and judges it: chaos first, then peace, then what must be true.

    outcome = simulate(seed)

The safety of the cluster is checked all the time; that it goes on is asked only once everything has
been set right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ottla.aio import Admin, Consumer
from ottla.clients.topics import NewTopic
from ottla.errors import OttlaError
from ottla.model.ids import TopicPartition
from simulation.checks import Log, Onlooker, check_end
from simulation.faults import Faults
from simulation.history import History
from simulation.loop import Process
from simulation.plan import Plan, plan
from simulation.state import is_whole, partition_states
from simulation.workload import GROUP, PATIENCE, Workload
from simulation.world import World

START_SECONDS_MAX = 60.0
HEAL_SECONDS_MAX = 60.0
"""How long until all replicas are in sync again, and every program has done its work."""
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a seed came to."""

    seed: int
    violations: tuple[str, ...]
    digest: str
    """The same for two runs that were the same."""
    acknowledged: int
    reads: int
    seconds: float
    """Of the world's own time."""


class NoProgress(Exception):
    """Something that must happen by itself did not."""


def simulate(
    seed: int, *, on_note: Callable[[str], None] | None = None, story: Plan | None = None
) -> Outcome:
    """Runs one seed from beginning to end."""
    chosen = story or plan(seed)
    world, history = World(seed, on_note=on_note), History()
    world.add_brokers(chosen.brokers, chosen.settings)
    if on_note is not None:
        on_note(repr(chosen))
    try:
        world.run(_Story(world, chosen, history).tell())
    except NoProgress as stuck:
        history.violated("I10", str(stuck))
    for surprise in world.surprises:
        history.violated("surprise", surprise)
    return Outcome(
        seed,
        tuple(history.violations),
        world.trace.digest,
        history.acknowledged,
        history.reads,
        world.loop.time(),
    )


class _Story:
    """The phases of a world."""

    def __init__(self, world: World, plan: Plan, history: History) -> None:
        self._world = world
        self._plan = plan
        self._history = history
        self._workload = Workload(world, plan, history)
        self._onlooker = Onlooker(world, history)
        self._is_over = False

    async def tell(self) -> None:
        world = self._world
        for machine in world.machines:
            machine.start()
        await self._until(
            lambda: all(machine.is_serving for machine in world.machines),
            START_SECONDS_MAX,
            "not every broker has started",
        )
        await self._as_client("admin", self._create_topics)
        looking = asyncio.ensure_future(self._look())
        self._workload.start()
        faults = Faults(world, self._plan, self._workload)
        await faults.rage()
        faults.heal()
        await self._make_peace()
        looking.cancel()
        logs = await self._read_all()
        check_end(world, self._history, logs)
        await self._as_client("admin", self._check_group)

    async def _make_peace(self) -> None:
        world = self._world
        await self._until(lambda: is_whole(world), HEAL_SECONDS_MAX, self._what_is_not_whole)
        before = self._history.acknowledged
        await self._until(
            lambda: self._history.acknowledged > before, HEAL_SECONDS_MAX, "nothing is acknowledged"
        )
        self._history.is_over = True
        await self._until(
            lambda: not self._workload.unfinished,
            HEAL_SECONDS_MAX,
            lambda: f"{self._workload.unfinished} did not end",
        )

    def _what_is_not_whole(self) -> str:
        down = [machine.name for machine in self._world.machines if not machine.is_serving]
        states = [
            f"{place} leader {state.leader} in sync {state.isr}"
            for place, state in partition_states(self._world)
            if len(state.isr) < self._plan.replication or state.leader < 0
        ]
        falls = [machine.falls[-1] for machine in self._world.machines if machine.falls]
        return f"not whole: {down} {states} {falls}"

    async def _look(self) -> None:
        while True:
            self._onlooker.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _until(
        self, condition: Callable[[], bool], seconds_max: float, complaint: str | Callable[[], str]
    ) -> None:
        ends = self._world.loop.time() + seconds_max
        while not condition():
            if self._world.loop.time() > ends:
                raise NoProgress(complaint if isinstance(complaint, str) else complaint())
            await asyncio.sleep(0.05)

    # --- as a client ---

    async def _as_client(self, name: str, work: Callable[[], object]) -> None:
        """Does something on a client's machine, again and again until it succeeds."""
        done: asyncio.Future[None] = self._world.loop.create_future()
        errors: list[str] = []

        async def run() -> None:
            while not done.done():
                try:
                    await work()  # type: ignore[misc]
                    done.set_result(None)
                except OttlaError as error:
                    errors.append(repr(error))
                    await asyncio.sleep(0.5)

        process: Process = self._world.in_process(name, run)
        await self._until(done.done, HEAL_SECONDS_MAX, lambda: f"{work.__name__}: {errors[-1:]}")
        process.is_dead = True

    async def _create_topics(self) -> None:
        async with Admin(self._world.bootstrap, **PATIENCE) as admin:
            for name, count in self._plan.topics.items():
                (made,) = await admin.create_topics(NewTopic(name, count))
                if made.error is not None and made.error.code.name != "TOPIC_ALREADY_EXISTS":
                    raise made.error
                await admin.wait_for_topic(name)

    async def _read_all(self) -> dict[str, dict[TopicPartition, Log]]:
        await self._as_client("reader", self._no_transaction_hangs)
        logs: dict[str, dict[TopicPartition, Log]] = {}
        for level in ("read_uncommitted", "read_committed"):

            async def read(level: str = level) -> None:
                logs[level] = await self._read_level(level)

            await self._as_client("reader", read)
        return logs

    async def _no_transaction_hangs(self) -> None:
        ends = [await self._ends(level) for level in ("read_uncommitted", "read_committed")]
        if ends[0] != ends[1]:
            raise OttlaError(f"a transaction is still open: {ends}")

    async def _ends(self, level: str) -> dict[TopicPartition, int]:
        async with Consumer(
            bootstrap_servers=self._world.bootstrap, isolation_level=level, **PATIENCE
        ) as consumer:
            return await consumer.end_offsets(*self._workload.places)

    async def _read_level(self, level: str) -> dict[TopicPartition, Log]:
        """Every partition from beginning to end."""
        logs: dict[TopicPartition, Log] = {place: [] for place in self._workload.places}
        async with Consumer(
            bootstrap_servers=self._world.bootstrap, isolation_level=level, **PATIENCE
        ) as consumer:
            consumer.assign(logs)
            consumer.seek_to_beginning()
            ends = await consumer.end_offsets(*logs)
            while any([await consumer.position(place) < ends[place] for place in logs]):
                for record in await consumer.poll(0.5):
                    place = TopicPartition(record.topic, record.partition)
                    logs[place].append((record.offset, record.value))
        return logs

    async def _check_group(self) -> None:
        if not self._history.committed:
            return
        async with Admin(self._world.bootstrap, **PATIENCE) as admin:
            kept = await admin.list_group_offsets(GROUP)
        for place, offset in self._history.committed.items():
            found = kept[place].offset if place in kept else None
            if found is None or found < offset:
                self._history.violated(
                    "I6", f"{place}: {offset} was committed, {found} is what is left"
                )
