"""What the tree's watchers tell, and how a picture is brought up to date with as little reading as
that allows.

An event is a hint (rule 6 of store.py): it says where to look, not what is there. Reading happens
behind everything that was committed when it was told.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.changes import forget_oldest_deletions
from ottla.cluster.image import (
    ClusterImage,
    ConfigImage,
    Draft,
    TopicImage,
    config_from,
    image_from,
    image_without_topics,
    partition_from,
    topic_from,
)
from ottla.cluster.layout import BROKER_CONFIGS, BROKER_IDS, TOPIC_CONFIGS, TOPIC_DELETIONS, TOPICS
from ottla.cluster.store import ROOT, MetadataStore, Node


class News(msgspec.Struct):
    """The parts of the picture that may have changed."""

    is_everything: bool = False
    are_brokers: bool = False
    """The living brokers, the controller, or the levels of features."""
    topics: set[str] = msgspec.field(default_factory=set)
    states: set[tuple[str, int]] = msgspec.field(default_factory=set)
    """Partitions whose leader or set in sync changed, of topics that are otherwise as they were."""
    configs: set[str] = msgspec.field(default_factory=set)
    """Paths of the settings of brokers and other entities."""

    def __bool__(self) -> bool:
        return bool(
            self.is_everything or self.are_brokers or self.topics or self.states or self.configs
        )

    def comes_before(self, path: str) -> bool:
        """Whether this is to be seen before what happened at a path now.

        Who left sets in sync first and the cluster later was being stopped; the other way round, it
        died. One look at both would not tell.
        """
        return bool(self.states) and path.startswith(f"{BROKER_IDS}/")

    def note(self, path: str) -> None:
        """Something happened at a path."""
        parts = path.split("/")[1:]
        match parts:
            case ["brokers", "ids", _] | ["controller"] | ["controller_epoch"] | ["feature"]:
                self.are_brokers = True
            case ["brokers", "topics", topic]:
                self.topics.add(topic)
            case ["brokers", "topics", topic, "partitions", index, "state"] if index.isdecimal():
                self.states.add((topic, int(index)))
            case ["config", "topics", topic] | ["admin", "delete_topics", topic]:
                self.topics.add(topic)
            case ["config", _, _, *_]:
                self.configs.add(path)
            case _ if path in _BRANCHES:
                # The node itself stands for anything below it.
                self.is_everything = True

    def add(self, other: News) -> None:
        """Together with what was to be looked at before."""
        self.is_everything |= other.is_everything
        self.are_brokers |= other.are_brokers
        self.topics |= other.topics
        self.states |= other.states
        self.configs |= other.configs


_BRANCHES = frozenset({ROOT, BROKER_IDS, TOPICS, TOPIC_CONFIGS, TOPIC_DELETIONS, BROKER_CONFIGS})


async def read_news(store: MetadataStore, image: ClusterImage, news: News) -> ClusterImage:
    """The picture with the parts read again that may have changed."""
    if news.is_everything:
        return image_from(await store.read_all(ROOT))
    if news.are_brokers:
        image = await _with_brokers(store, image)
    draft = Draft(image)
    await _read_topics(store, draft, news.topics)
    states = {each for each in news.states if each[0] not in news.topics}
    await _read_states(store, draft, states)
    nodes = await store.get_many(sorted(news.configs))
    for path in news.configs:
        _put_config(draft, path, config_from(nodes, path))
    return draft.image()


async def _with_brokers(store: MetadataStore, image: ClusterImage) -> ClusterImage:
    names = await store.children(BROKER_IDS)
    paths = [f"{BROKER_IDS}/{name}" for name in names]
    roots = [layout.CONTROLLER, layout.CONTROLLER_EPOCH, layout.FEATURES]
    nodes = await store.get_many([*roots, *paths])
    found = image_without_topics(nodes)
    return replace(
        image,
        brokers=image.brokers if found.brokers == image.brokers else found.brokers,
        controller_id=found.controller_id,
        controller_epoch=found.controller_epoch,
        features=found.features,
        features_version=found.features_version,
    )


async def _read_topics(store: MetadataStore, draft: Draft, names: set[str]) -> None:
    if not names:
        return
    ordered = sorted(names)
    paths = [path for name in ordered for path in _topic_paths(name)]
    # A topic that is gone was deleted only if that is noted; read it together with the topic.
    known = [topic for name in ordered if (topic := draft.topics.get(name)) is not None]
    paths += [layout.deleted_topic_path(topic.id) for topic in known]
    nodes = await store.get_many(paths)
    for topic in known:
        if layout.deleted_topic_path(topic.id) in nodes:
            draft.put_deleted_topic(topic.id)
            forget_oldest_deletions(draft)
    states = [
        layout.partition_state_path(name, index)
        for name in ordered
        if (node := nodes.get(layout.topic_path(name))) is not None
        for index in layout.decode(layout.TopicNode, node.data, name).partitions
    ]
    nodes |= await store.get_many(states)
    for name in ordered:
        _put_topic(draft, name, nodes)


def _topic_paths(name: str) -> tuple[str, str, str]:
    return (
        layout.topic_path(name),
        layout.topic_config_path(name),
        layout.topic_deletion_path(name),
    )


def _put_topic(draft: Draft, name: str, nodes: Mapping[str, Node]) -> None:
    known = draft.topics.get(name)
    if layout.topic_path(name) not in nodes:
        if known is not None:
            draft.drop_topic(name)
        return
    found = topic_from(nodes, name)
    if found == known:
        return
    if known is not None and known.id != found.id:
        draft.drop_topic(name)
    draft.put_topic(found)


async def _read_states(store: MetadataStore, draft: Draft, states: set[tuple[str, int]]) -> None:
    by_topic: dict[str, list[int]] = {}
    unknown: set[str] = set()
    for topic, index in sorted(states):
        known = draft.topics.get(topic)
        if known is None or index >= len(known.partitions):
            unknown.add(topic)  # it is new: all of it is
        else:
            by_topic.setdefault(topic, []).append(index)
    paths = [
        layout.partition_state_path(topic, index)
        for topic, indexes in by_topic.items()
        for index in indexes
    ]
    nodes = await store.get_many(paths)
    for topic, indexes in by_topic.items():
        if topic not in unknown:
            _put_states(draft, draft.topics[topic], indexes, nodes)
    await _read_topics(store, draft, unknown)


def _put_states(
    draft: Draft, topic: TopicImage, indexes: list[int], nodes: Mapping[str, Node]
) -> None:
    partitions = list(topic.partitions)
    for index in indexes:
        path = layout.partition_state_path(topic.name, index)
        if (node := nodes.get(path)) is not None:
            partitions[index] = partition_from(node, path, partitions[index])
    changed = tuple(partitions)
    if changed != topic.partitions:
        draft.put_topic(replace(topic, partitions=changed))


def _put_config(draft: Draft, path: str, config: ConfigImage) -> None:
    if path.startswith(f"{BROKER_CONFIGS}/"):
        name = path.removeprefix(f"{BROKER_CONFIGS}/")
        if draft.broker_config(name) != config:
            draft.put_broker_config(name, config)
        return
    entity = layout.entity_of(path)
    if draft.entity_config(entity) != config:
        draft.put_entity_config(entity, config)
