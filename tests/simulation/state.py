"""The cluster as an all-knowing onlooker sees it: the ensemble's tree and the brokers' memory."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.partition import Partition
from ottla.cluster import layout
from ottla.model.ids import TopicPartition
from simulation.world import Machine, World

CHROOT = "/ottla"


def partition_states(world: World) -> Iterator[tuple[TopicPartition, layout.PartitionStateNode]]:
    """What the ensemble has for each partition."""
    tree = world.ensemble.tree
    for topic_path in tree.children(CHROOT + layout.TOPICS):
        for path in tree.children(f"{topic_path}/partitions"):
            node = tree.nodes.get(f"{path}/state")
            if node is not None:
                topic, partition = topic_path.rpartition("/")[2], int(path.rpartition("/")[2])
                state = layout.decode(layout.PartitionStateNode, node.data, path)
                yield TopicPartition(topic, partition), state


def replicas(world: World, place: TopicPartition) -> tuple[int, ...]:
    """Who holds a partition."""
    path = CHROOT + layout.topic_path(place.topic)
    node = layout.decode(layout.TopicNode, world.ensemble.tree.nodes[path].data, path)
    return node.partitions[place.partition]


def is_whole(world: World) -> bool:
    """Whether every broker serves and every replica is in sync."""
    if not all(machine.is_serving for machine in world.machines):
        return False
    return all(
        state.leader >= 0 and set(state.isr) == set(replicas(world, place))
        for place, state in partition_states(world)
    )


def held(machine: Machine, place: TopicPartition) -> Partition | None:
    """A broker's own idea of a partition."""
    if machine.app is None:
        return None
    return machine.app.partitions.of_topic(place.topic).get(place.partition)
