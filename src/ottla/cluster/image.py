"""The picture of the cluster a broker answers from: immutable, replaced as a whole by each change.

A `Draft` is the next picture while it is being made. It copies the map of topics once, when it
first changes it, however many topics it changes: a copy inside the dict's own code (some
microseconds for a thousand topics), never a Python loop. Readers keep the picture they took.
Does not know the store; `image_from` reads the nodes somebody else fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

import msgspec
from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.layout import NO_LEADER, RECOVERED
from ottla.cluster.store import Node, Operation, name_of
from ottla.model.ids import BrokerId, LeaderEpoch, TopicId

NO_NODE_VERSION: Final = -1
"""Stands for the version of a node that does not exist."""
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)
NO_BROKER: Final = BrokerId(NO_LEADER)


class PartitionImage(msgspec.Struct, frozen=True):
    """Who holds and who leads a partition. `partition_epoch` is the version of its state's node."""

    index: int
    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    partition_epoch: int
    recovery_state: int = RECOVERED
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


class TopicImage(msgspec.Struct, frozen=True):
    """A topic with its partitions in order of their index, and its overridden settings."""

    name: str
    id: TopicId
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = msgspec.field(default_factory=dict)
    version: int = 0
    config_version: int = NO_NODE_VERSION
    is_being_deleted: bool = False
    """Whether a deletion in several steps has begun; the controller finishes it."""

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class BrokerImage(msgspec.Struct, frozen=True):
    """A living broker. Its epoch grows with each registration."""

    id: BrokerId
    endpoints: tuple[str, ...]
    rack: str | None
    epoch: int
    features: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The highest level it can have of each feature."""


class ConfigImage(msgspec.Struct, frozen=True):
    """The settings changed at run time for one broker, or for all of them."""

    configs: Mapping[str, str] = msgspec.field(default_factory=dict)
    version: int = NO_NODE_VERSION


class ClusterImage(msgspec.Struct, frozen=True):
    """Everything a broker tells about its cluster. Nobody changes the maps of a finished image."""

    cluster_id: str = ""
    controller_id: BrokerId = NO_BROKER
    controller_epoch: int = 0
    brokers: Mapping[BrokerId, BrokerImage] = msgspec.field(default_factory=dict)
    topics: Mapping[str, TopicImage] = msgspec.field(default_factory=dict)
    topic_names: Mapping[TopicId, str] = msgspec.field(default_factory=dict)
    broker_configs: Mapping[str, ConfigImage] = msgspec.field(default_factory=dict)
    """By the broker's id as text, and by layout.DEFAULT_ENTITY."""
    entity_configs: Mapping[str, ConfigImage] = msgspec.field(default_factory=dict)
    """Settings of users, clients, addresses and groups, by place: users/alice, groups/readers."""
    metric_names: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Topics with a dot or an underscore, by their name with dots made underscores."""
    features: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The level of each feature that the whole cluster has."""
    features_version: int = NO_NODE_VERSION
    deleted_topics: Mapping[TopicId, None] = msgspec.field(default_factory=dict)
    """The topics deleted last, oldest first. Only a topic in here may lose its logs."""

    def topic_by_id(self, topic_id: TopicId) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return self.topics[name] if name is not None else None

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """The settings a group has of its own."""
        found = self.entity_configs.get(layout.group_entity(group_id))
        return found.configs if found is not None else {}

    def with_topic(self, topic: TopicImage) -> ClusterImage:
        """This picture with a topic added or replaced."""
        draft = Draft(self)
        draft.put_topic(topic)
        return draft.image()

    def without_topic(self, name: str) -> ClusterImage:
        """This picture without one of its topics."""
        draft = Draft(self)
        draft.drop_topic(name)
        return draft.image()


class Change(msgspec.Struct, frozen=True):
    """What to ask of the store, and the picture once the store has done it."""

    operations: tuple[Operation, ...]
    image: ClusterImage


class Draft:
    """The next picture of a cluster, and the operations that make it true."""

    def __init__(self, base: ClusterImage) -> None:
        self.base = base
        self.operations: list[Operation] = []
        self._cuts: list[int] = []
        self._topics: dict[str, TopicImage] | None = None
        self._topic_names: dict[TopicId, str] = {}
        self._metric_names: dict[str, str] = {}
        self._broker_configs: dict[str, ConfigImage] = {}
        self._entity_configs: dict[str, ConfigImage] = {}
        self._deleted_topics: dict[TopicId, None] | None = None
        self.features = base.features
        self.features_version = base.features_version

    @property
    def topics(self) -> Mapping[str, TopicImage]:
        return self._topics if self._topics is not None else self.base.topics

    @property
    def metric_names(self) -> Mapping[str, str]:
        return self._metric_names if self._topics is not None else self.base.metric_names

    @property
    def deleted_topics(self) -> Mapping[TopicId, None]:
        return self.base.deleted_topics if self._deleted_topics is None else self._deleted_topics

    def broker_config(self, broker: str) -> ConfigImage:
        found = self._broker_configs.get(broker) or self.base.broker_configs.get(broker)
        return found or ConfigImage()

    def entity_config(self, entity: str) -> ConfigImage:
        found = self._entity_configs.get(entity) or self.base.entity_configs.get(entity)
        return found or ConfigImage()

    def may_end_here(self) -> None:
        """Say that the operations so far leave a tree that can stay so.

        A store that cannot take all at once may take them up to here, and the rest later or, after
        a crash, never.
        """
        self._cuts.append(len(self.operations))

    def pieces(self) -> list[list[Operation]]:
        """The operations, cut wherever they may be."""
        ends = sorted({cut for cut in self._cuts if cut < len(self.operations)})
        bounds = [0, *ends, len(self.operations)]
        found = [self.operations[start:end] for start, end in pairwise(bounds)]
        return [piece for piece in found if piece]

    def put_topic(self, topic: TopicImage) -> None:
        topics = self._own_topics()
        topics[topic.name] = topic
        self._topic_names[topic.id] = topic.name
        if "." in topic.name or "_" in topic.name:
            self._metric_names[metric_name(topic.name)] = topic.name

    def drop_topic(self, name: str) -> None:
        topic = self._own_topics().pop(name)
        del self._topic_names[topic.id]
        self._metric_names.pop(metric_name(name), None)

    def put_deleted_topic(self, topic_id: TopicId) -> None:
        """Remember that a topic was deleted."""
        self._own_deleted_topics()[topic_id] = None

    def forget_deleted_topic(self, topic_id: TopicId) -> None:
        """Remember it no longer, as many more were deleted since."""
        self._own_deleted_topics().pop(topic_id, None)

    def put_broker_config(self, broker: str, config: ConfigImage) -> None:
        self._broker_configs[broker] = config

    def put_entity_config(self, entity: str, config: ConfigImage) -> None:
        self._entity_configs[entity] = config

    def put_features(self, levels: Mapping[str, int]) -> None:
        """The levels of all features from now on."""
        self.features = levels
        self.features_version += 1

    def image(self) -> ClusterImage:
        """The finished picture. The draft must not be changed after it."""
        base = self.base
        is_own = self._topics is not None
        return ClusterImage(
            cluster_id=base.cluster_id,
            controller_id=base.controller_id,
            controller_epoch=base.controller_epoch,
            brokers=base.brokers,
            topics=self.topics,
            topic_names=self._topic_names if is_own else base.topic_names,
            broker_configs={**base.broker_configs, **self._broker_configs},
            entity_configs={**base.entity_configs, **self._entity_configs},
            metric_names=self.metric_names,
            features=self.features,
            features_version=self.features_version,
            deleted_topics=self.deleted_topics,
        )

    def change(self) -> Change:
        """The operations with the picture they lead to."""
        return Change(tuple(self.operations), self.image())

    def _own_topics(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self.base.topics)
            self._topic_names = dict(self.base.topic_names)
            self._metric_names = dict(self.base.metric_names)
        return self._topics

    def _own_deleted_topics(self) -> dict[TopicId, None]:
        if self._deleted_topics is None:
            self._deleted_topics = dict(self.base.deleted_topics)
        return self._deleted_topics


def metric_name(topic: str) -> str:
    """The name under which a topic is measured; two topics may not share it."""
    return topic.replace(".", "_")


def image_from(nodes: Mapping[str, Node]) -> ClusterImage:
    """The picture that the nodes of a whole tree show."""
    draft = Draft(image_without_topics(nodes))
    for name in _children(nodes, layout.TOPICS):
        draft.put_topic(topic_from(nodes, name))
    for topic_id in _deleted_topics(nodes):
        draft.put_deleted_topic(topic_id)
    for broker in _children(nodes, layout.BROKER_CONFIGS):
        path = layout.broker_config_path(broker)
        draft.put_broker_config(broker, config_from(nodes, path))
    for path in _below(nodes, layout.ENTITY_CONFIGS):
        draft.put_entity_config(layout.entity_of(path), config_from(nodes, path))
    return draft.image()


def image_without_topics(nodes: Mapping[str, Node]) -> ClusterImage:
    """The brokers, the controller and the features that the nodes show."""
    cluster_id, controller, epoch = "", NO_LEADER, 0
    if (node := nodes.get(layout.CLUSTER_ID)) is not None:
        cluster_id = layout.decode(layout.ClusterIdNode, node.data, layout.CLUSTER_ID).id
    if (node := nodes.get(layout.CONTROLLER)) is not None:
        found = layout.decode(layout.ControllerNode, node.data, layout.CONTROLLER)
        controller = found.broker_id
    if (node := nodes.get(layout.CONTROLLER_EPOCH)) is not None:
        epoch = layout.decode_controller_epoch(node.data)
    brokers = [_broker(nodes, name) for name in _children(nodes, layout.BROKER_IDS)]
    return ClusterImage(
        cluster_id=cluster_id,
        controller_id=BrokerId(controller),
        controller_epoch=epoch,
        brokers={broker.id: broker for broker in brokers},
        features=_features(nodes),
        features_version=nodes[layout.FEATURES].version
        if layout.FEATURES in nodes
        else NO_NODE_VERSION,
    )


def _features(nodes: Mapping[str, Node]) -> Mapping[str, int]:
    node = nodes.get(layout.FEATURES)
    if node is None:
        return {}
    return layout.decode(layout.FeatureNode, node.data, layout.FEATURES).features


def _deleted_topics(nodes: Mapping[str, Node]) -> list[TopicId]:
    """In the order in which they were deleted."""
    paths = [f"{layout.DELETED_TOPICS}/{name}" for name in _children(nodes, layout.DELETED_TOPICS)]
    paths.sort(key=lambda path: nodes[path].czxid)
    return [layout.topic_id_from(name_of(path), path) for path in paths]


def _children(nodes: Mapping[str, Node], parent: str) -> Iterable[str]:
    depth = parent.count("/") + 1
    prefix = f"{parent}/"
    return [name_of(p) for p in nodes if p.startswith(prefix) and p.count("/") == depth]


def _below(nodes: Mapping[str, Node], roots: Iterable[str]) -> Iterable[str]:
    prefixes = tuple(f"{root}/" for root in roots)
    return [path for path in nodes if path.startswith(prefixes)]


def _broker(nodes: Mapping[str, Node], name: str) -> BrokerImage:
    path = f"{layout.BROKER_IDS}/{name}"
    found = layout.decode(layout.BrokerNode, nodes[path].data, path)
    return broker_from(BrokerId(int(name)), found, nodes[path].czxid)


def broker_from(broker_id: BrokerId, node: layout.BrokerNode, epoch: int) -> BrokerImage:
    """A broker as its registration shows it."""
    features = {name: levels.get("max_version", 0) for name, levels in node.features.items()}
    return BrokerImage(broker_id, node.endpoints, node.rack, epoch, features)


def config_from(nodes: Mapping[str, Node], path: str) -> ConfigImage:
    """The settings that lie at a path."""
    node = nodes.get(path)
    if node is None:
        return ConfigImage()
    if not node.data:
        return ConfigImage(version=node.version)
    return ConfigImage(layout.decode(layout.ConfigNode, node.data, path).config, node.version)


def topic_from(nodes: Mapping[str, Node], name: str) -> TopicImage:
    """The topic that its nodes show."""
    path = layout.topic_path(name)
    found = layout.decode(layout.TopicNode, nodes[path].data, path)
    config = config_from(nodes, layout.topic_config_path(name))
    partitions = tuple(_partition(nodes, name, index, found) for index in sorted(found.partitions))
    topic_id = layout.topic_id_from(found.topic_id, path)
    is_being_deleted = layout.topic_deletion_path(name) in nodes
    return TopicImage(
        name,
        topic_id,
        partitions,
        config.configs,
        nodes[path].version,
        config.version,
        is_being_deleted,
    )


def _partition(
    nodes: Mapping[str, Node], topic: str, index: int, found: layout.TopicNode
) -> PartitionImage:
    """A partition; one whose state is not written yet has no leader."""
    path = layout.partition_state_path(topic, index)
    node = nodes.get(path)
    replicas = tuple(map(BrokerId, found.partitions[index]))
    assigned = PartitionImage(
        index,
        NO_BROKER,
        LeaderEpoch(0),
        (),
        replicas,
        NO_NODE_VERSION,
        adding_replicas=tuple(map(BrokerId, found.adding_replicas.get(index, ()))),
        removing_replicas=tuple(map(BrokerId, found.removing_replicas.get(index, ()))),
    )
    return assigned if node is None else partition_from(node, path, assigned)


def partition_from(node: Node, path: str, assigned: PartitionImage) -> PartitionImage:
    """A partition, assigned as it is, in the state that a node shows."""
    state = layout.decode(layout.PartitionStateNode, node.data, path)
    recovery = state.leader_recovery_state
    return replace(
        assigned,
        leader=BrokerId(state.leader),
        leader_epoch=LeaderEpoch(state.leader_epoch),
        isr=tuple(map(BrokerId, state.isr)),
        partition_epoch=node.version,
        recovery_state=recovery if isinstance(recovery, int) else RECOVERED,
    )
