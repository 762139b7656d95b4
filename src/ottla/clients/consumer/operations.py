"""What a caller asks of a consumer besides polling: seek, pause, look offsets up.

Functions over the core, so that both faces share them; those that wait are coroutines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from ottla.clients.consumer.core import ConsumerCore
from ottla.clients.consumer.group_place import OffsetAndMetadata
from ottla.clients.group_offsets import by_topic
from ottla.clients.metadata import TopicInfo
from ottla.clients.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from ottla.clients.topics import list_topics
from ottla.errors import TimedOut
from ottla.model.ids import TopicPartition

Partitions = Iterable[TopicPartition]
POSITION_POLL_S = 0.01


def seek(core: ConsumerCore, where: TopicPartition, offset: int | OffsetAndMetadata) -> None:
    """The next poll returns records from this offset on."""
    with core.subscription.lock:
        state = core.subscription.state(where)
        core.subscription.forget_rest(where)
        if isinstance(offset, int):
            state.move_to(offset)
        else:
            state.move_to(offset.offset, offset.leader_epoch)
    core.request_positions()


def seek_by_policy(core: ConsumerCore, partitions: Partitions, policy: str) -> None:
    """The next poll begins where the policy says; all partitions unless some are named."""
    with core.subscription.lock:
        for where in list(partitions) or list(core.subscription.states):
            state = core.subscription.state(where)
            core.subscription.forget_rest(where)
            state.move_to(-1)
            state.reset_to = policy
    core.request_positions()


def pause(core: ConsumerCore, partitions: Partitions, *, is_paused: bool) -> None:
    """Polls pass over these until they are resumed; what was fetched of them stays."""
    with core.subscription.lock:
        for where in partitions:
            core.subscription.state(where).is_paused = is_paused
    core.request_positions()
    core.group.attend()


def paused(core: ConsumerCore) -> frozenset[TopicPartition]:
    """Those that polls pass over."""
    states = core.subscription.states
    return frozenset(where for where, state in states.items() if state.is_paused)


def lag(core: ConsumerCore, where: TopicPartition) -> int | None:
    """Offsets between the position and the end as last heard of; None while unknown."""
    return core.subscription.state(where).lag


async def position(core: ConsumerCore, where: TopicPartition) -> int:
    """The offset the next poll begins with, found now if it is not known."""
    deadline = time.monotonic() + core.settings.default_api_timeout_ms / 1000
    while (at := core.subscription.state(where).position) < 0:
        if time.monotonic() > deadline:
            raise TimedOut(f"the position of {where} is not known")
        core.request_positions()
        await asyncio.sleep(POSITION_POLL_S)
        core.raise_errors()
    return at


async def committed(
    core: ConsumerCore, partitions: Partitions
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What the group has committed, for those of the partitions where it has."""
    return await core.committing.commits.committed(partitions)


async def beginning_offsets(
    core: ConsumerCore, partitions: Partitions
) -> dict[TopicPartition, int]:
    """The first offset of each."""
    found = await _listed(core, dict.fromkeys(partitions, EARLIEST))
    return {where: listed.offset for where, listed in found.items()}


async def end_offsets(core: ConsumerCore, partitions: Partitions) -> dict[TopicPartition, int]:
    """The offset after the last record of each that this consumer may read."""
    found = await _listed(core, dict.fromkeys(partitions, LATEST))
    return {where: listed.offset for where, listed in found.items()}


async def offsets_for_times(
    core: ConsumerCore, timestamps: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ListedOffset | None]:
    """The first record at or after a timestamp in each; None where there is none."""
    found = await _listed(core, timestamps)
    return {where: listed if listed.offset >= 0 else None for where, listed in found.items()}


async def _listed(
    core: ConsumerCore, timestamps: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ListedOffset]:
    found: dict[TopicPartition, ListedOffset] = {}
    for topic, rows in by_topic(timestamps).items():
        listed = await list_offsets(
            core.client,
            topic,
            {each.partition: timestamps[each] for each in rows},
            committed_only=core.settings.committed_only,
        )
        found |= {each: listed[each.partition] for each in rows}
    return found


async def partitions_for(core: ConsumerCore, topic: str) -> TopicInfo:
    """The topic with its partitions and their leaders."""
    return await core.client.retrying(lambda: core.client.topic(topic, refresh=True))


async def topics(core: ConsumerCore) -> list[TopicInfo]:
    """All topics but the broker's own."""
    return await list_topics(core.client)


def full_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None,
) -> dict[TopicPartition, OffsetAndMetadata] | None:
    """Offsets with their notes, however short they were written."""
    if offsets is None:
        return None
    return {
        where: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for where, offset in offsets.items()
    }
