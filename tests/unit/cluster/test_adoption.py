"""Topics made of logs again: the newest log leads, whoever tells of it first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import permutations

import pytest

from ottla.cluster.adoption import (
    ADOPTION,
    KEEP_EVERYTHING,
    AdoptableLog,
    AdoptableTopic,
    Adoption,
    AdoptionNotes,
    adopt,
)
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.metadata import ClusterMetadata
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId

ID = TopicId(b"0123456789abcdef")
LOGS = {1: (4, 100), 2: (5, 90), 3: (5, 95)}
"""The latest epoch and the end offset of each broker's log."""


def a_topic(*logs: tuple[int, int, int], topic_id: TopicId = ID) -> AdoptableTopic:
    return AdoptableTopic(
        "orders",
        topic_id,
        tuple(AdoptableLog(index, LeaderEpoch(epoch), end) for index, epoch, end in logs),
    )


async def tell(
    store: EmbeddedStore, broker: int, topics: Sequence[AdoptableTopic]
) -> tuple[ClusterMetadata, Adoption]:
    """One broker's turn, as a process of its own would have it."""
    metadata = await ClusterMetadata.open(store, cluster_id="c")
    before = metadata.image.controller_epoch
    await metadata.become_controller(BrokerId(broker), 0)
    notes = AdoptionNotes(await store.get(ADOPTION), epoch_before=before)
    adoption = await metadata.change(
        lambda draft: adopt(
            draft, BrokerId(broker), topics, notes.copy(), lambda _: KEEP_EVERYTHING
        )
    )
    await metadata.resign()
    return metadata, adoption


@pytest.mark.parametrize("order", list(permutations(LOGS)))
def test_the_newest_log_leads_in_whatever_order_brokers_tell(order: tuple[int, ...]) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        for broker in order:
            epoch, end = LOGS[broker]
            metadata, _ = await tell(store, broker, [a_topic((0, epoch, end))])
        (partition,) = metadata.image.topics["orders"].partitions
        assert partition.leader == 3
        assert partition.isr == (3,)
        assert sorted(partition.replicas) == [1, 2, 3]
        assert partition.leader_epoch > 5
        await store.close()

    asyncio.run(scenario())


def test_what_was_told_before_a_broker_ran_counts_no_more() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        await tell(store, 1, [a_topic((0, 4, 100))])
        running = await ClusterMetadata.open(store, cluster_id="c")
        await running.become_controller(BrokerId(1), 0)
        await running.resign()
        metadata, adoption = await tell(store, 2, [a_topic((0, 4, 200))])
        assert metadata.image.topics["orders"].partitions[0].replicas == (1,)
        assert adoption.known == ["orders"]
        await store.close()

    asyncio.run(scenario())


def test_a_topic_of_the_same_name_and_another_id_is_left_alone() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        await tell(store, 1, [a_topic((0, 4, 100))])
        other = a_topic((0, 9, 900), topic_id=TopicId(b"fedcba9876543210"))
        metadata, adoption = await tell(store, 2, [other])
        assert metadata.image.topics["orders"].id == ID
        assert "another topic" in adoption.refused["orders"]
        await store.close()

    asyncio.run(scenario())


def test_a_partition_between_others_that_has_no_log_begins_empty_until_another_tells() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        await tell(store, 1, [a_topic((0, 4, 100), (2, 4, 100))])
        metadata, _ = await tell(store, 2, [a_topic((1, 3, 50))])
        leaders = [part.leader for part in metadata.image.topics["orders"].partitions]
        assert leaders == [1, 2, 1]
        assert dict(metadata.image.topics["orders"].configs) == KEEP_EVERYTHING
        await store.close()

    asyncio.run(scenario())


def test_metadata_older_than_a_log_is_brought_past_its_epoch() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        await tell(store, 1, [a_topic((0, 4, 100))])
        metadata, _ = await tell(store, 1, [a_topic((0, 17, 200))])
        assert metadata.image.topics["orders"].partitions[0].leader_epoch == 18
        await store.close()

    asyncio.run(scenario())
