"""How a broker leaves its cluster in order: others lead what it led before it goes.

Does not know what else a broker does to stop. Waiting is bounded: a broker that nobody helps to
leave goes anyway, and the others find out by its session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from ottla.errors import ErrorCode, OttlaError
from ottla.model.ids import BrokerId
from ottla.protocol.message import Message
from ottla.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from ottla.settings.replication import ReplicationSettings

FIRST_BACKOFF_SECONDS: Final = 0.2
"""The first time a broker asks again soon: a new controller is there in a moment, and followers
catch up in one."""

log = logging.getLogger(__name__)


class ControllerPeer(Protocol):
    """Asks whoever is the controller now, also where that is this broker."""

    async def ask_controller(self, request: Message) -> Message: ...


async def depart(
    broker_id: BrokerId,
    epoch: int,
    controller: ControllerPeer,
    settings: ReplicationSettings,
    stop_following: Callable[[], Awaitable[None]],
) -> bool:
    """Let others lead what this broker leads, before it stops; whether nothing is left.

    Asks again while something is left, as often as the settings say, and then follows nobody. What
    the broker fetched between may have brought it back into sets in sync, so it is taken out of
    them once more. `epoch` is that of the broker's registration.
    """
    is_free = settings.controlled_shutdown_enable and await _hand_over(
        broker_id, epoch, controller, settings
    )
    await stop_following()
    if is_free:
        await _ask(broker_id, epoch, controller)
    return is_free


async def _hand_over(
    broker_id: BrokerId, epoch: int, controller: ControllerPeer, settings: ReplicationSettings
) -> bool:
    for attempt in range(settings.controlled_shutdown_max_retries + 1):
        if attempt:
            longest = settings.controlled_shutdown_retry_backoff_ms / 1000
            await asyncio.sleep(min(longest, FIRST_BACKOFF_SECONDS * 4 ** (attempt - 1)))
        left = await _ask(broker_id, epoch, controller)
        if left == 0:
            log.info("all that this broker led is led by others")
            return True
    log.warning("this broker stops though others could not take over all that it leads")
    return False


async def _ask(broker_id: BrokerId, epoch: int, controller: ControllerPeer) -> int | None:
    """How many partitions are left; None where the controller could not tell."""
    request = ControlledShutdownRequest(broker_id, epoch)
    try:
        answer = await controller.ask_controller(request)
    except OttlaError as error:
        log.info("the controller was not told that this broker stops: %s", error)
        return None
    assert isinstance(answer, ControlledShutdownResponse)
    if answer.error_code:
        log.info("the controller answers %s", ErrorCode.of(answer.error_code).name)
        return None
    return len(answer.remaining_partitions)
