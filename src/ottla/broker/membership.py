"""This broker as a member of a cluster: registered, fenced when in doubt, controller if it can be.

Invariants:
1. Registered means: the session that made the registration was alive when last heard of. While the
   session may have ended the broker leads nothing and decides nothing (standing.py, metadata.py).
2. A session that was replaced by a new one is registered again; the broker need not restart.
3. Whenever nobody is controller, every member tries to become it; the store lets one succeed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ottla.broker.standing import Standing
from ottla.cluster.image import NO_BROKER, ClusterImage, Draft
from ottla.cluster.layout import BrokerNode
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.registration import BrokerIdInUse, ControllerMoved
from ottla.cluster.session import SessionEvent
from ottla.cluster.store import StoreError

RETRY_SECONDS: Final = 1.0
PATIENCE_SESSIONS: Final = 2.0
"""How many session timeouts a registration with this id may outlive the process that made it."""

log = logging.getLogger(__name__)


class Membership:
    """Keeps this broker known to the others."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        standing: Standing,
        node: BrokerNode,
        *,
        stood: Callable[[], None],
        begin: Callable[[Draft], None],
    ) -> None:
        self._metadata = metadata
        self._standing = standing
        self._node = node
        self._stood = stood
        """Told when this broker's right to lead has changed."""
        self._begin = begin
        """The first thing this broker decides as controller."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Registers, and goes on doing what a member has to; BrokerIdInUse where it cannot."""
        self._metadata.store.session.listeners.append(self._session_changed)
        await self._register()
        self._metadata.observers.append(self._looked)
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def leave(self) -> None:
        """Gives the decisions up, and does nothing more. The registration ends with the session."""
        session = self._metadata.store.session
        if self._session_changed in session.listeners:
            session.listeners.remove(self._session_changed)
        if self._looked in self._metadata.observers:
            self._metadata.observers.remove(self._looked)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._metadata.resign()

    def _looked(self, image: ClusterImage) -> None:
        if image.controller_id == NO_BROKER:
            self._wake.set()

    def _session_changed(self, event: SessionEvent) -> None:
        match event:
            case SessionEvent.DOUBTED:
                log.warning("the metadata store is silent: leading nothing until it answers")
                self._metadata.doubt_controllership()
            case SessionEvent.CONFIRMED:
                log.info("the metadata store answers again, and the session lives")
            case SessionEvent.EXPIRED:
                log.warning("the session with the metadata store has ended")
                self._metadata.doubt_controllership()
                self._standing.is_registered = False
            case SessionEvent.RENEWED:
                log.info("there is a new session with the metadata store: registering again")
        self._wake.set()
        self._stood()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._set_right()
            except StoreError as error:
                log.warning("this broker's membership has to be set right again: %s", error)
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wake.set)

    async def _set_right(self) -> None:
        if not self._standing.is_registered:
            await self._register()
            self._stood()
        if not self._metadata.is_controller and self._standing.is_certain:
            await self._campaign()

    async def _register(self) -> None:
        store = self._metadata.store
        patience_seconds = PATIENCE_SESSIONS * store.session.timeout_ms / 1000
        session_id = store.session.id
        # A broker in a cluster that is not its own would be taken for an empty one of its own.
        await self._metadata.confirm_cluster()
        try:
            await self._metadata.register(
                self._standing.broker_id, self._node, patience_seconds=patience_seconds
            )
        except BrokerIdInUse:
            log.error("broker id %d is in use by another process", self._standing.broker_id)
            raise
        if store.session.id == session_id:
            self._standing.is_registered = True

    async def _campaign(self) -> None:
        metadata = self._metadata
        held_by = metadata.image.controller_id
        if held_by not in (NO_BROKER, self._standing.broker_id):
            return
        try:
            epoch = await metadata.become_controller(
                self._standing.broker_id, self._standing.clock.now_ms()
            )
        except ControllerMoved as moved:
            log.debug("%s", moved)
            return
        log.info("this broker is the controller, in epoch %d", epoch)
        await metadata.change(self._begin)
