"""A broker that only hears of changes comes to the same picture as one that reads everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cluster.changes import (
    NewTopic,
    add_partitions,
    change_in_sync,
    change_leader,
    create_topic,
    delete_topic,
)
from ottla.cluster.config_changes import replace_broker_config, replace_topic_config
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import Draft, image_from
from ottla.cluster.layout import BrokerNode
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.placement import Turn
from ottla.cluster.store import ROOT
from ottla.errors import OttlaError
from ottla.model.ids import BrokerId, TopicId
from ottla.settings import BrokerSettings
from support.eventually import eventually_async

NAMES = ("a", "b.c", "d_e")
BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
SETTINGS = BrokerSettings()

Step = Callable[[Draft, int], None]


def _create(name: str, partitions: int) -> Step:
    def step(draft: Draft, turn: int) -> None:
        wish = NewTopic(name, partitions, 2)
        topic_id = TopicId(f"{name}{turn}".encode().ljust(16, b"\0"))
        create_topic(draft, wish, topic_id=topic_id, turn=Turn(), settings=SETTINGS)

    return step


def _delete(name: str) -> Step:
    return lambda draft, _: delete_topic(draft, name)


def _grow(name: str, count: int) -> Step:
    return lambda draft, _: add_partitions(draft, name, count, assignments=None, turn=Turn())


def _lead(name: str, index: int) -> Step:
    def step(draft: Draft, _: int) -> None:
        partition = draft.topics[name].partitions[index]
        change_leader(draft, name, index, leader=partition.replicas[-1], isr=partition.replicas)

    return step


def _shrink(name: str, index: int) -> Step:
    def step(draft: Draft, _: int) -> None:
        partition = draft.topics[name].partitions[index]
        change_in_sync(draft, name, index, led=partition, isr=(partition.leader,))

    return step


def _configure(name: str, value: int) -> Step:
    texts = {"retention.ms": str(value)} if value else {}
    return lambda draft, _: replace_topic_config(draft, name, texts, SETTINGS)


def _configure_broker(value: int) -> Step:
    texts = {"max.connections": str(value + 1)}
    return lambda draft, _: replace_broker_config(draft, "1", texts)


names, small = st.sampled_from(NAMES), st.integers(0, 2)
steps = st.one_of(
    st.builds(_create, names, st.integers(1, 3)),
    st.builds(_delete, names),
    st.builds(_grow, names, st.integers(2, 5)),
    st.builds(_lead, names, small),
    st.builds(_shrink, names, small),
    st.builds(_configure, names, small),
    st.builds(_configure_broker, small),
)


async def _started() -> tuple[ClusterMetadata, ClusterMetadata]:
    store = await EmbeddedStore.open(None)
    writer = await ClusterMetadata.open(store, cluster_id="c")
    for broker in BROKERS:
        await writer.register(broker, _node(broker))
    await writer.become_controller(BROKERS[0], 1)
    follower = await ClusterMetadata.open(store, cluster_id="c")
    follower.follow()
    return writer, follower


def _node(broker: BrokerId) -> BrokerNode:
    return BrokerNode(
        host="h",
        port=broker,
        endpoints=(f"PLAINTEXT://h:{broker}",),
        timestamp="0",
        rack=None,
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(steps, st.booleans()), min_size=3, max_size=14))
def test_who_follows_the_news_sees_what_is_there(changes: list[tuple[Step, bool]]) -> None:
    async def play() -> None:
        writer, follower = await _started()
        await writer.change(lambda draft: _create(NAMES[0], 3)(draft, -1))
        for turn, (step, waits) in enumerate(changes):
            try:
                await writer.change(lambda draft, step=step, turn=turn: step(draft, turn))
            except (OttlaError, KeyError, IndexError):
                continue  # there is no such topic or partition just now
            if waits:
                await eventually_async(lambda: follower.image == writer.image)
        wanted = image_from(await writer.store.read_all(ROOT))
        await eventually_async(lambda: follower.image == wanted)
        await follower.stop_following()

    asyncio.run(play())
