"""Where each piece of metadata lies in the tree and how it is written there: Kafka's own znodes.

A class per kind of node; `encode` and `decode` turn it to bytes and back. Does not know the store.
"""

from __future__ import annotations

import base64
import binascii
import urllib.parse
from typing import Final, TypeVar

import msgspec

from ottla.cluster.store import StoreFailed
from ottla.model.ids import TopicId

BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER: Final = "/cluster"
CLUSTER_ID: Final = "/cluster/id"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
ENTITY_CONFIGS: Final = (
    "/config/users",
    "/config/clients",
    "/config/ips",
    "/config/groups",
)
"""Where settings of what is neither topic nor broker lie."""
TOPIC_DELETIONS: Final = "/admin/delete_topics"
DELETED_TOPICS: Final = "/admin/deleted_topics"
"""The topics deleted last, a node for each by its id: proof that their logs may go."""
FEATURES: Final = "/feature"
DEFAULT_ENTITY: Final = "<default>"

ROOTS: Final = (
    "/brokers",
    BROKER_IDS,
    TOPICS,
    CLUSTER,
    "/admin",
    TOPIC_DELETIONS,
    DELETED_TOPICS,
    "/config",
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    *ENTITY_CONFIGS,
)
"""Persistent nodes that must exist before anything else is written, parents first."""

NO_LEADER: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1


class TopicNode(msgspec.Struct, frozen=True, kw_only=True):
    """A topic: its id and the replicas of each partition, the preferred leader first."""

    version: int = 3
    topic_id: str
    partitions: dict[int, tuple[int, ...]]
    adding_replicas: dict[int, tuple[int, ...]] = {}
    removing_replicas: dict[int, tuple[int, ...]] = {}


class PartitionStateNode(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads a partition and who is in sync. The node's version is the partition epoch."""

    version: int = 1
    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int | msgspec.UnsetType = msgspec.UNSET


class ConfigNode(msgspec.Struct, frozen=True, kw_only=True):
    """The settings overridden for one topic or broker."""

    version: int = 1
    config: dict[str, str]


class BrokerNode(msgspec.Struct, frozen=True, kw_only=True):
    """A living broker. The czxid of its ephemeral node is the broker's epoch."""

    version: int = 5
    host: str | None
    port: int
    endpoints: tuple[str, ...]
    jmx_port: int = -1
    timestamp: str
    rack: str | None = None
    listener_security_protocol_map: dict[str, str]
    features: dict[str, dict[str, int]] = {}


class ControllerNode(msgspec.Struct, frozen=True, kw_only=True):
    """The broker that decides for the cluster."""

    version: int = 2
    broker_id: int = msgspec.field(name="brokerid")
    timestamp: str
    kraft_controller_epoch: int = msgspec.field(default=-1, name="kraftControllerEpoch")


class ClusterIdNode(msgspec.Struct, frozen=True, kw_only=True):
    """The name the cluster goes by."""

    version: str = "1"
    id: str


class FeatureNode(msgspec.Struct, frozen=True, kw_only=True):
    """The level of each feature that the whole cluster has."""

    version: int = 2
    status: int = 1
    features: dict[str, int]


class ProducerIdBlockNode(msgspec.Struct, frozen=True, kw_only=True):
    """The last block of producer ids given out: [start, end], both written as text."""

    version: int = 1
    broker: int
    block_start: str
    block_end: str


AnyNode = TypeVar("AnyNode", bound=msgspec.Struct)


def encode(node: msgspec.Struct) -> bytes:
    """The bytes to store."""
    return msgspec.json.encode(node)


def decode(node_class: type[AnyNode], data: bytes, path: str) -> AnyNode:
    """What the bytes at `path` say; StoreFailed where they are not what belongs there."""
    try:
        return msgspec.json.decode(data, type=node_class)
    except msgspec.DecodeError as error:
        raise StoreFailed(f"the metadata at {path} cannot be read ({error})") from error


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    if not data.isdigit():
        raise StoreFailed(f"the metadata at {CONTROLLER_EPOCH} is not a number")
    return int(data)


def topic_id_text(topic_id: TopicId) -> str:
    """A topic's id as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def topic_id_from(text: str, path: str) -> TopicId:
    """The sixteen bytes behind a written topic id."""
    try:
        topic_id = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        topic_id = b""
    if len(topic_id) != 16:
        raise StoreFailed(f"the metadata at {path} has {text!r} where a topic id belongs")
    return TopicId(topic_id)


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_deletion_path(topic: str) -> str:
    """Where it is noted that a topic is being deleted."""
    return f"{TOPIC_DELETIONS}/{topic}"


def deleted_topic_path(topic_id: TopicId) -> str:
    """Where it is noted that a topic was deleted."""
    return f"{DELETED_TOPICS}/{topic_id_text(topic_id)}"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def broker_config_path(broker: str) -> str:
    """`broker` is a number as text, or DEFAULT_ENTITY."""
    return f"{BROKER_CONFIGS}/{broker}"


def entity_config_path(entity: str) -> str:
    """`entity` is a place below /config, such as users/alice or clients/<default>."""
    return f"/config/{entity}"


def group_entity(group_id: str) -> str:
    """The entity of a group."""
    return f"groups/{entity_name(group_id)}"


def group_of(entity: str) -> str | None:
    """The group whose settings an entity's are; None where it is no group."""
    kind, _, name = entity.partition("/")
    return urllib.parse.unquote(name) if kind == "groups" else None


def entity_of(path: str) -> str:
    """The entity whose settings lie at a path."""
    return path.removeprefix("/config/")


def entity_name(name: str | None) -> str:
    """A name as it stands in a path; None stands for all that have no settings of their own."""
    if name is None:
        return DEFAULT_ENTITY
    return urllib.parse.quote(name, safe="").replace("~", "%7E")


def name_of_entity(text: str) -> str | None:
    """The name behind one part of a path, or None for the default."""
    return None if text == DEFAULT_ENTITY else urllib.parse.unquote(text)
