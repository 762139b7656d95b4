"""The simulated world is itself to be trusted: time, order, processes, network, disk, ensemble."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from ottla.broker.system_clock import SystemClock
from ottla.cluster.session import SessionEvent
from ottla.cluster.store import Create, SetData, StoreUncertain
from ottla.cluster.zookeeper import ZooKeeperStore
from simulation.loop import Process, Stuck
from simulation.world import World

ADDRESS = "zookeeper://zookeeper:2181/test?session_timeout_ms=6000"


class Echo(asyncio.BufferedProtocol):
    """Notes what comes, and says it again where it is told to."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self._buffer = bytearray(4)
        self.received = b""
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]
        if self._answers:
            self.transport.write(self._buffer[:nbytes])

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Stage:
    """A world with a server on one machine and a client on another."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.server = Process("server")
        self.client = Process("client")
        self.ends: list[Echo] = []

    def run(self, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs the scenario on the client's machine."""
        done = self.world.loop.create_future()

        async def listen() -> None:
            await self.world.loop.create_server(self._accept, "server", 9)

        async def play() -> None:
            try:
                await scenario()
                done.set_result(None)
            except BaseException as error:
                done.set_exception(error)

        async def main() -> None:
            self.world.loop.start(self.server, listen)
            self.world.loop.start(self.client, play)
            await asyncio.wait_for(done, 1_000)

        self.world.run(main())

    def _accept(self) -> Echo:
        self.ends.append(Echo(answers=True))
        return self.ends[-1]

    async def connect(self) -> Echo:
        _, echo = await self.world.loop.create_connection(lambda: Echo(answers=False), "server", 9)
        return echo

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(100):
            while not condition():  # noqa: ASYNC110 - the condition is nobody's to tell of
                await asyncio.sleep(0.01)


def test_hours_pass_at_once_and_chance_is_the_seeds() -> None:
    async def scenario() -> tuple[float, float, str, float]:
        before, wall = time.monotonic(), time.time()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 7_200)
        return time.monotonic() - before, time.time() - wall, str(uuid.uuid4()), random.random()

    first, second = World(5).run(scenario()), World(5).run(scenario())
    assert first == second
    assert first[:2] == pytest.approx((7_200, 7_200), abs=0.01)
    assert World(6).run(scenario()) != first


def test_a_world_in_which_nothing_can_happen_any_more_says_so() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        World(1).run(forever())


def test_bytes_arrive_in_order_however_they_are_cut() -> None:
    stage = Stage()

    async def scenario() -> None:
        echo = await stage.connect()
        sent = b"".join(str(number).encode() for number in range(200))
        for start in range(0, len(sent), 7):
            echo.transport.write(sent[start : start + 7])
        await stage.until(lambda: len(echo.received) == len(sent))
        assert echo.received == sent

    stage.run(scenario)


def test_a_blocked_way_keeps_what_was_sent_and_delivers_it_when_it_is_free() -> None:
    stage = Stage()

    async def scenario() -> None:
        echo = await stage.connect()
        stage.world.network.block("client", "server")
        echo.transport.write(b"later")
        stage.world.later(50, stage.world.network.heal)
        await stage.until(lambda: echo.received == b"later")
        assert stage.world.loop.time() > 50

    stage.run(scenario)


def test_a_killed_process_resets_its_connections_and_runs_no_more() -> None:
    stage = Stage()

    async def scenario() -> None:
        echo = await stage.connect()
        echo.transport.write(b"last words")
        stage.server.is_dead = True
        stage.world.network.kill(stage.server)
        await stage.until(lambda: bool(echo.lost))
        assert isinstance(echo.lost[0], ConnectionResetError)
        assert echo.received == b""
        with pytest.raises(ConnectionRefusedError):
            await stage.connect()

    stage.run(scenario)


def test_a_machine_without_power_says_nothing_until_it_is_on_again() -> None:
    stage = Stage()

    async def scenario() -> None:
        echo = await stage.connect()
        stage.server.is_dead = True
        stage.world.network.switch_off(stage.server)
        echo.transport.write(b"?")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stage.connect(), 30)
        assert not echo.lost
        stage.world.network.switch_on("server")
        echo.transport.write(b"?")
        await stage.until(lambda: bool(echo.lost))

    stage.run(scenario)


def test_a_stopped_process_goes_on_with_what_came_meanwhile() -> None:
    stage = Stage()

    async def scenario() -> None:
        echo = await stage.connect()
        await stage.until(lambda: bool(stage.ends))
        stage.server.is_stopped = True
        echo.transport.write(b"hello")
        stage.world.later(20, lambda: stage.world.loop.resume(stage.server))
        await stage.until(lambda: echo.received == b"hello")
        assert stage.world.loop.time() > 20

    stage.run(scenario)


def test_a_client_that_is_cut_off_loses_its_session_and_learns_of_it_when_it_is_back() -> None:
    stage = Stage()

    async def scenario() -> None:
        events: list[tuple[SessionEvent, float]] = []
        store = await ZooKeeperStore.open(ADDRESS, SystemClock())
        store.session.listeners.append(
            lambda event: events.append((event, stage.world.loop.time()))
        )
        await store.multi([Create("/mine", b"", is_ephemeral=True)])
        began = stage.world.loop.time()
        for way in (("client", "zookeeper"), ("zookeeper", "client")):
            stage.world.network.block(*way)
        stage.world.later(30, stage.world.network.heal)
        await stage.until(lambda: len(events) == 3)
        (doubt, doubted_at), (end, ended_at), (renewal, _) = events
        assert (doubt, end, renewal) == (
            SessionEvent.DOUBTED,
            SessionEvent.EXPIRED,
            SessionEvent.RENEWED,
        )
        assert doubted_at < began + 6 < ended_at
        assert await store.get("/mine") is None
        await store.close()

    stage.run(scenario)


def test_lost_answers_leave_a_change_done_or_not_and_reading_tells() -> None:
    stage = Stage()

    async def scenario() -> None:
        store = await ZooKeeperStore.open(ADDRESS, SystemClock())
        await store.multi([Create("/node", b"0")])
        stage.world.ensemble.loss_chance = 0.3
        done, lost, number = 0, 0, 0
        while number < 60:
            number += 1
            before = await store.get("/node")
            assert before is not None
            try:
                await store.multi([SetData("/node", str(number).encode(), before.version)])
            except StoreUncertain:
                after = await store.get("/node")
                assert after is not None
                assert after.version in (before.version, before.version + 1)
                done += after.version > before.version
                lost += after.version == before.version
        assert done
        assert lost

    stage.run(scenario)
