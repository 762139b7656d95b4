"""What goes wrong, and how it is set right again. Which, when and for how long: the seed says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from ottla.aio import Admin
from ottla.clients.topics import NewTopic
from ottla.errors import OttlaError
from simulation import ensemble
from simulation.plan import Plan
from simulation.state import is_whole
from simulation.workload import PATIENCE, Workload
from simulation.world import Machine, World

Undo = Callable[[], None]


class Faults:
    """Makes trouble until it is told to stop, then sets everything right."""

    def __init__(self, world: World, plan: Plan, workload: Workload) -> None:
        self._world = world
        self._plan = plan
        self._workload = workload
        self._chance: Random = world.chance("faults")
        self._is_healed = False
        self._weakened: Machine | None = None
        """Has lost what it had not synced, and is not known to be in sync again."""

    async def rage(self) -> None:
        """Trouble for as long as the plan says."""
        loop, plan = self._world.loop, self._plan
        ends = loop.time() + plan.chaos_seconds
        while loop.time() < ends:
            await asyncio.sleep(self._chance.uniform(*plan.pause_seconds))
            fault = self._chance.choice(plan.faults)
            undo = getattr(self, "_" + fault.replace("-", "_"))(self._machine())
            if undo is not None:
                self._world.later(self._chance.uniform(*plan.outage_seconds), undo)

    def heal(self) -> None:
        """Everything works again from now on."""
        world = self._world
        world.note("everything is set right")
        self._is_healed = True
        world.network.heal()
        world.ensemble.loss_chance = 0.0
        if world.ensemble.is_down:
            world.ensemble.regain_quorum()
        for machine in world.machines:
            machine.disk.fail_sync = False
            machine.disk.space_bytes = None
            machine.resume()
            machine.start()
            if machine.process is not None:
                machine.process.work_seconds = (0.0001, 0.004)
                machine.process.clock_ahead_seconds = 0.0

    def _machine(self) -> Machine:
        return self._chance.choice(self._world.machines)

    def _note(self, *facts: object) -> None:
        self._world.note("fault:", *facts)

    # --- processes and machines ---

    def _kill(self, machine: Machine) -> Undo:
        if self._may_go(machine):
            machine.kill()
        return machine.start

    def _kill_all(self, _: Machine) -> Undo:
        machines = list(self._world.machines)
        self._chance.shuffle(machines)
        if self._weakened is None:
            for machine in machines:
                machine.kill()
        return lambda: [machine.start() for machine in machines] and None

    def _power(self, machine: Machine) -> Undo | None:
        """What was not synced may go. Where nothing else is promised, one at a time."""
        if self._plan.syncs_always:
            machine.lose_power()
        elif len(self._world.machines) > 1 and is_whole(self._world):
            self._weakened = machine
            machine.lose_power()
        return machine.start

    def _may_go(self, machine: Machine) -> bool:
        """Whether the others can do without this one: not while one has lost its memory."""
        if self._weakened is not None and is_whole(self._world):
            self._weakened = None
        return self._weakened is None or self._weakened is machine

    def _pause(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        machine.pause()
        return machine.resume

    def _stop(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        machine.stop()
        return machine.start

    def _clock(self, machine: Machine) -> Undo | None:
        if machine.process is not None:
            machine.process.clock_ahead_seconds = self._chance.choice((-3600.0, 3600.0))
            self._note("clock", machine.name, machine.process.clock_ahead_seconds)
        return None

    def _client(self, _: Machine) -> None:
        self._workload.kill(self._chance.choice(self._workload.names))

    # --- the network ---

    def _block(self, what: str, ways: list[tuple[str, str]]) -> Undo:
        self._note(what, *(f"{source}>{target}" for source, target in ways))
        for way in ways:
            self._world.network.block(*way)
        return self._world.network.heal

    def _others(self, machine: Machine) -> list[str]:
        return [each.name for each in self._world.machines if each is not machine]

    def _isolate(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        others = [*self._others(machine), ensemble.MACHINE]
        if self._chance.random() < 0.5:
            others += self._workload.names
        return self._block("isolate", _both_ways(machine.name, others))

    def _one_way(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        others = [*self._others(machine), ensemble.MACHINE]
        others = self._chance.sample(others, self._chance.randint(1, len(others)))
        ways = [(machine.name, other) for other in others]
        if self._chance.random() < 0.5:
            ways = [(target, source) for source, target in ways]
        return self._block("one way", ways)

    def _from_store(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        return self._block("from store", _both_ways(machine.name, [ensemble.MACHINE]))

    def _from_brokers(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        return self._block("from brokers", _both_ways(machine.name, self._others(machine)))

    def _bridge(self, machine: Machine) -> Undo | None:
        """Two halves that see each other only through one machine."""
        if not self._may_go(machine):
            return None
        others = self._others(machine)
        half = len(others) // 2
        ways = [way for one in others[:half] for way in _both_ways(one, others[half:])]
        return self._block("bridge", ways)

    def _slow_network(self, machine: Machine) -> Undo:
        self._world.network.slow[machine.name] = self._chance.choice((0.02, 0.3, 1.5))
        self._note("slow network", machine.name)
        return lambda: self._world.network.slow.pop(machine.name, None) and None

    def _connections(self, machine: Machine) -> None:
        self._note("connections cut", machine.name)
        self._world.network.cut_connections(machine.name, self._chance.randint(1, 4))

    # --- disks ---

    def _slow_disk(self, machine: Machine) -> Undo | None:
        process = machine.process
        if process is None:
            return None
        self._note("slow disk", machine.name)
        process.work_seconds = (0.01, 3.0)
        return lambda: setattr(process, "work_seconds", (0.0001, 0.004))

    def _full_disk(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        self._note("full disk", machine.name)
        machine.disk.space_bytes = self._chance.randint(0, 5_000)
        return lambda: setattr(machine.disk, "space_bytes", None)

    def _failing_sync(self, machine: Machine) -> Undo | None:
        if not self._may_go(machine):
            return None
        self._note("failing sync", machine.name)
        machine.disk.fail_sync = True
        return lambda: setattr(machine.disk, "fail_sync", False)

    # --- the metadata store ---

    def _session(self, machine: Machine) -> None:
        self._note("session of", machine.name)
        self._world.ensemble.expire_of(machine.name)

    def _quorum(self, _: Machine) -> Undo:
        self._note("quorum lost")
        self._world.ensemble.lose_quorum()
        return self._world.ensemble.regain_quorum

    def _lost_answers(self, _: Machine) -> Undo:
        self._note("answers of the store are lost")
        self._world.ensemble.loss_chance = self._chance.choice((0.02, 0.2))
        return lambda: setattr(self._world.ensemble, "loss_chance", 0.0)

    # --- administrators ---

    def _elect(self, _: Machine) -> None:
        self._administer("elect", lambda admin: admin.elect_leaders())

    def _reassign(self, _: Machine) -> None:
        plan, chance = self._plan, self._chance
        place = chance.choice(self._workload.places)
        ids = [machine.node_id for machine in self._world.machines]
        target = chance.sample(ids, plan.replication) if chance.random() < 0.8 else None
        self._administer(
            f"move {place} to {target}", lambda admin: admin.reassign_partitions({place: target})
        )

    def _topics(self, _: Machine) -> None:
        name = f"churn-{self._chance.randrange(3)}"
        if self._chance.random() < 0.5:
            self._administer(f"create {name}", lambda admin: admin.create_topics(NewTopic(name, 2)))
        else:
            self._administer(f"delete {name}", lambda admin: admin.delete_topics(name))

    def _administer(self, what: str, work: Callable[[Admin], object]) -> None:
        self._note(what)

        async def run() -> None:
            try:
                async with Admin(self._world.bootstrap, **PATIENCE) as admin:
                    await work(admin)  # type: ignore[misc]
            except OttlaError as error:
                self._world.note("admin", what, repr(error))

        self._world.in_process("admin", run)


def _both_ways(machine: str, others: list[str]) -> list[tuple[str, str]]:
    return [way for other in others for way in ((machine, other), (other, machine))]
