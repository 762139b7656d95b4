"""What the controller does of its own accord: elections, moves, deletions, balancing.

Every broker runs this; it acts only while the broker is the controller, and looks at everything
afresh whenever it becomes it. From then on it looks at what each new picture has changed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.leaderships import Leaderships
from ottla.cluster.image import ClusterImage
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.registration import ControllerMoved
from ottla.errors import OttlaError

RETRY_SECONDS: Final = 1.0
FIRST_BALANCE_SECONDS: Final = 5.0
"""After becoming controller: brokers that start together have found their places by then."""

log = logging.getLogger(__name__)


class ControllerDuties:
    """Keeps the cluster's leaders and moves as they should be."""

    def __init__(
        self, metadata: ClusterMetadata, leaderships: Leaderships, view: ClusterView
    ) -> None:
        self._metadata = metadata
        self._leaderships = leaderships
        self._view = view
        self._examined: ClusterImage | None = None
        self._epoch: int | None = None
        """The controller epoch in which the picture was examined."""
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins to look at each new picture, and at that of now."""
        loop = asyncio.get_running_loop()
        self._metadata.observers.append(self._told)
        self._news.set()
        self._tasks = [loop.create_task(self._settle()), loop.create_task(self._balance())]

    async def stop(self) -> None:
        """Ends it; a change under way is finished by the metadata."""
        if self._told in self._metadata.observers:
            self._metadata.observers.remove(self._told)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _told(self, _image: ClusterImage) -> None:
        self._news.set()

    async def _settle(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if not self._metadata.is_controller:
                self._examined = self._epoch = None
                continue
            epoch = self._metadata.image.controller_epoch
            if epoch != self._epoch:
                self._examined, self._epoch = None, epoch
            try:
                self._examined = await self._leaderships.settle(self._examined)
            except ControllerMoved:
                log.info("another broker is the controller now")
            except OttlaError as error:
                log.warning("the cluster could not be set right, and will be again: %s", error)
                self._retry_soon()
            except Exception:
                log.exception("the cluster could not be set right, and will be again")
                self._retry_soon()

    def _retry_soon(self) -> None:
        asyncio.get_running_loop().call_later(RETRY_SECONDS, self._news.set)

    async def _balance(self) -> None:
        await asyncio.sleep(FIRST_BALANCE_SECONDS)
        while True:
            settings = self._view.settings.replication
            if settings.auto_leader_rebalance_enable and self._metadata.is_controller:
                try:
                    await self._leaderships.balance(settings.leader_imbalance_per_broker_percentage)
                except OttlaError as error:
                    log.warning("leaders could not be balanced: %s", error)
            await asyncio.sleep(settings.leader_imbalance_check_interval_seconds)
