"""A ZooKeeper ensemble as its clients meet it: sessions, one tree, answers late, lost or never.

`SimulatedZooKeeper` stands where kazoo stands in production, so that the store, its reads behind a
sync, its deadline and its watches are the real ones. The rules it keeps are ZooKeeper's: what a
connection sends is done in order; what an old connection left behind is not done after a new one
was opened; a session not heard of for its timeout ends, and its ephemeral nodes with it; watches
are told in the order of commits, before the answers to what was asked later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, Final

from ottla.cluster import zookeeper_wire as wire
from ottla.cluster.zookeeper_address import ZooKeeperAddress
from ottla.cluster.zookeeper_client import (
    Changed,
    Connected,
    ConnectionLost,
    Disconnected,
    Event,
    Expired,
    Request,
)
from ottla.model.clock import Clock
from simulation.loop import KERNEL, PROCESS, Process, SimulatedLoop
from simulation.network import Network
from simulation.tree import Tree

MACHINE: Final = "zookeeper"
RECONNECT_SECONDS: Final = 0.3
AGAIN_SECONDS: Final = 0.1
STOP_SECONDS: Final = 0.005


class Session:
    """A session as the ensemble has it."""

    def __init__(self, number: int, timeout_seconds: float) -> None:
        self.id = number
        self.timeout_seconds = timeout_seconds
        self.heard_at = 0.0
        self.is_over = False
        self.client: SimulatedZooKeeper | None = None


class Ensemble:
    """The servers, taken as one."""

    def __init__(self, network: Network, chance: Random) -> None:
        self.network = network
        self.loop = network.loop
        self.chance = chance
        self.tree = Tree()
        self.is_down = False
        self.loss_chance = 0.0
        """How likely a connection breaks at a request, before or after it is done."""
        self.observers: list[Callable[[list[Changed]], None]] = []
        self._sessions: dict[int, Session] = {}

    def open_session(self, timeout_seconds: float) -> Session:
        session = Session(0x1000 + len(self._sessions), timeout_seconds)
        self._sessions[session.id] = session
        self.heard(session)
        self._look_later(session)
        return session

    def session(self, number: int) -> Session | None:
        found = self._sessions.get(number)
        return None if found is None or found.is_over else found

    def heard(self, session: Session) -> None:
        session.heard_at = self.loop.time()

    def end(self, session: Session) -> None:
        """The session is over: it was closed, not heard of, or somebody wants it so."""
        if session.is_over:
            return
        session.is_over = True
        self.network.trace.add(self.loop.time(), "session ends", session.id)
        self.tell(self.tree.end_session(session.id))
        if session.client is not None:
            session.client.cut()

    def expire_of(self, machine: str) -> None:
        """Ends the sessions of one machine."""
        for session in tuple(self._sessions.values()):
            if session.client is not None and session.client.process.machine == machine:
                self.end(session)

    def lose_quorum(self) -> None:
        """No server answers; sessions rest."""
        self.is_down = True

    def regain_quorum(self) -> None:
        """A new leader gives every session its whole time again."""
        self.is_down = False
        for session in self._sessions.values():
            if not session.is_over:
                self.heard(session)

    def tell(self, changes: list[Changed]) -> None:
        """Watches of all connected clients hear of a commit."""
        for session in tuple(self._sessions.values()):
            if session.client is not None and not session.is_over:
                session.client.watched(changes)
        for observer in self.observers:
            observer(changes)

    def _look_later(self, session: Session) -> None:
        due = session.heard_at + session.timeout_seconds
        self.loop.call_at(max(due, self.loop.time() + 0.01), self._look, session, context=KERNEL)

    def _look(self, session: Session) -> None:
        if session.is_over:
            return
        silence = self.loop.time() - session.heard_at
        if silence >= session.timeout_seconds and not self.is_down:
            self.end(session)
        else:
            self._look_later(session)


class _Asked:
    """A request on its way or waiting for its answer."""

    def __init__(self, request: Request, future: asyncio.Future[Any]) -> None:
        self.request = request
        self.future = future


class _Way:
    """What is under way in one direction, in order."""

    def __init__(
        self,
        loop: SimulatedLoop,
        context: Context,
        is_blocked: Callable[[], bool],
        delay: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._context = context
        self._is_blocked = is_blocked
        self._delay = delay
        self._items: deque[tuple[float, Callable[[], None]]] = deque()

    def send(self, arrive: Callable[[], None]) -> None:
        self._items.append((self._loop.time() + self._delay(), arrive))
        if len(self._items) == 1:
            self._schedule(self._items[0][0])

    def _schedule(self, due: float) -> None:
        self._loop.call_at(max(due, self._loop.time()), self._arrive, context=self._context)

    def _arrive(self) -> None:
        if self._is_blocked():
            self._schedule(self._loop.time() + AGAIN_SECONDS)
            return
        _, arrive = self._items.popleft()
        if self._items:
            self._schedule(self._items[0][0])
        arrive()


class SimulatedZooKeeper:
    """One client's connection, with the methods of `ZooKeeperClient`."""

    def __init__(
        self,
        ensemble: Ensemble,
        address: ZooKeeperAddress,
        clock: Clock,
        listener: Callable[[Event], None],
    ) -> None:
        process = PROCESS.get()
        assert process is not None
        self.process: Process = process
        self._ensemble = ensemble
        self._loop = ensemble.loop
        self._clock = clock
        self._listener = listener
        self._timeout_seconds = address.options.session_timeout_ms / 1000
        self._session_id = 0
        self._connection = 0
        """Which connection this is; zero while there is none. What an older one carries is void."""
        self._opened_count = 0
        self._asked_count = 0
        self._is_watching = False
        self._is_closing = False
        self._waiting: list[_Asked] = []
        self._answered_at = 0.0
        self._to = _Way(self._loop, KERNEL, self._is_blocked_to, self._delay)
        self._from = _Way(self._loop, process.context, self._is_blocked_from, self._delay)

    # --- what the store calls, in its process ---

    def start(self) -> None:
        """Begins to connect, and never stops trying."""
        self._try(self._clock.monotonic_ms())

    def ask(self, request: Request) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._connection:
            future.set_exception(ConnectionLost("there is no connection"))
            return future
        asked = _Asked(request, future)
        self._waiting.append(asked)
        if len(self._waiting) == 1:
            self._answered_at = self._loop.time()
            self._watch_for_silence(self._connection)
        ensemble = self._ensemble
        if ensemble.loss_chance and ensemble.chance.random() < ensemble.loss_chance:
            if ensemble.chance.random() < 0.5:
                self._up(self._do_silently, asked)
            self._up(self.cut)
        else:
            self._up(self._do, asked)
        return future

    async def stop(self) -> None:
        self._is_closing = True
        session = self._ensemble.session(self._session_id)
        if session is not None and self._connection:
            self._up(self._ensemble.end, session)
        self._connection = 0
        stopped = self._loop.create_future()
        self._later(STOP_SECONDS, stopped.set_result, None)
        await stopped

    # --- connecting ---

    def _try(self, asked_at_ms: int) -> None:
        if self._is_closing:
            return
        if self._is_cut_off():
            self._later(RECONNECT_SECONDS, lambda: self._try(self._clock.monotonic_ms()))
            return
        self._later(self._delay(), self._connect, asked_at_ms)

    def _connect(self, asked_at_ms: int) -> None:
        if self._is_closing:
            return
        ensemble = self._ensemble
        if self._is_cut_off():
            self._try(asked_at_ms)
            return
        session = ensemble.session(self._session_id)
        if session is None and self._session_id:
            self._session_id = 0
            self._listener(Expired("the session is over"))
            self._try(self._clock.monotonic_ms())
            return
        if session is None:
            session = ensemble.open_session(self._timeout_seconds)
            self._session_id = session.id
        session.client = self
        ensemble.heard(session)
        self._opened_count += 1
        self._connection = self._opened_count
        self._is_watching = False
        timeout_ms = round(session.timeout_seconds * 1000)
        self._listener(Connected(session.id, timeout_ms, asked_at_ms))

    def cut(self) -> None:
        """The connection breaks; nobody knows what became of what was asked."""
        if self._connection:
            self._connection = 0
            self._loop.call_soon(self._lost, context=self.process.context)

    def _lost(self) -> None:
        waiting, self._waiting = self._waiting, []
        for asked in waiting:
            if not asked.future.done():
                asked.future.set_exception(ConnectionLost("the connection broke"))
        if not self._is_closing:
            self._listener(Disconnected())
            self._later(RECONNECT_SECONDS, lambda: self._try(self._clock.monotonic_ms()))

    def _watch_for_silence(self, connection: int) -> None:
        """Two thirds of a timeout without an answer that is due: the connection is dead."""
        patience = self._timeout_seconds * 2 / 3

        def look() -> None:
            if self._connection != connection or not self._waiting:
                return
            if self._loop.time() - self._answered_at >= patience:
                self.cut()
            else:
                self._watch_for_silence(connection)

        due = self._answered_at + patience
        self._loop.call_at(max(due, self._loop.time() + 0.01), look, context=self.process.context)

    # --- what happens at the ensemble ---

    def _do(self, asked: _Asked) -> None:
        answer = self._answer(asked.request)
        self._down(self._settle, asked, answer)

    def _do_silently(self, asked: _Asked) -> None:
        self._answer(asked.request)

    def _answer(self, request: Request) -> Any:
        ensemble = self._ensemble
        if request.type == wire.OperationType.MULTI:
            assert isinstance(request, wire.Multi)
            results, changes = ensemble.tree.multi(request, self._session_id)
            if changes:
                ensemble.tell(changes)
            return results
        if request.type == wire.OperationType.MULTI_READ:
            return ensemble.tree.read(request)
        if request.type == wire.OperationType.ADD_WATCH:
            self._is_watching = True
        return None

    def watched(self, changes: list[Changed]) -> None:
        """Something was committed."""
        if self._is_watching and self._connection:
            for change in changes:
                self._down(self._listener, change)

    def _settle(self, asked: _Asked, answer: Any) -> None:
        self._answered_at = self._loop.time()
        if asked in self._waiting:
            self._waiting.remove(asked)
        if not asked.future.done():
            asked.future.set_result(answer)

    # --- the ways there and back, each in order ---

    def _up(self, action: Callable[..., Any], *args: Any) -> None:
        connection = self._connection

        def arrive() -> None:
            if connection != self._connection and not self._is_closing:
                return
            session = self._ensemble.session(self._session_id)
            if session is None:
                self.cut()
                return
            self._ensemble.heard(session)
            self._ensemble.network.trace.add(self._loop.time(), self.process.machine, MACHINE)
            action(*args)

        self._to.send(arrive)

    def _down(self, action: Callable[..., Any], *args: Any) -> None:
        connection = self._connection

        def arrive() -> None:
            if connection == self._connection:
                action(*args)

        self._from.send(arrive)

    def _later(self, seconds: float, action: Callable[..., Any], *args: Any) -> None:
        self._loop.call_at(self._loop.time() + seconds, action, *args, context=self.process.context)

    def _delay(self) -> float:
        return self._ensemble.network.delay((self.process.machine, MACHINE))

    def _is_blocked_to(self) -> bool:
        network, machine = self._ensemble.network, self.process.machine
        return self._ensemble.is_down or network.is_blocked(machine, MACHINE)

    def _is_blocked_from(self) -> bool:
        network, machine = self._ensemble.network, self.process.machine
        return self._ensemble.is_down or network.is_blocked(MACHINE, machine)

    def _is_cut_off(self) -> bool:
        return self._is_blocked_to() or self._is_blocked_from()
