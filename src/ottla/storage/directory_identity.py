"""Whose data a directory holds: `meta.properties`, and each partition's `partition.metadata`.

Both are Kafka's own small text files. Knows nothing about logs.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from ottla.errors import ConfigError
from ottla.model.ids import BrokerId, TopicId
from ottla.storage import file_names
from ottla.storage.disk import Disk, read_file, replace_file

META_PROPERTIES: Final = "meta.properties"
_META_VERSION: Final = "1"
_PARTITION_VERSION: Final = "0"


class Identity(msgspec.Struct, frozen=True):
    """The broker and cluster a data directory belongs to."""

    node_id: BrokerId
    cluster_id: str
    directory_id: str | None = None


def read_identity(disk: Disk, root: str) -> Identity | None:
    """What `meta.properties` says, or None where the directory is new."""
    data = read_file(disk, f"{root}/{META_PROPERTIES}")
    if data is None:
        return None
    values = _properties(data, "=")
    node_id = values.get("node.id", values.get("broker.id", ""))
    cluster_id = values.get("cluster.id")
    if not node_id.isdecimal() or not cluster_id:
        raise ConfigError(
            "log.dirs",
            f"{root}/{META_PROPERTIES} does not name a node and a cluster",
            "restore the file, or remove it if this data belongs to this broker",
        )
    return Identity(BrokerId(int(node_id)), cluster_id, values.get("directory.id"))


def write_identity(disk: Disk, root: str, identity: Identity) -> None:
    lines = [
        f"version={_META_VERSION}",
        f"node.id={identity.node_id}",
        f"cluster.id={identity.cluster_id}",
    ]
    if identity.directory_id is not None:
        lines.append(f"directory.id={identity.directory_id}")
    text = "\n".join([*lines, ""])
    replace_file(disk, f"{root}/{META_PROPERTIES}", text.encode(), sync=True)


def read_topic_id(disk: Disk, directory: str) -> TopicId | None:
    """The id of the topic a partition's directory belongs to, where it is noted."""
    data = read_file(disk, f"{directory}/{file_names.PARTITION_METADATA}")
    if data is None:
        return None
    text = _properties(data, ":").get("topic_id", "")
    try:
        topic_id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return TopicId(topic_id) if len(topic_id) == 16 else None


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId, *, sync: bool) -> None:
    encoded = base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
    text = f"version: {_PARTITION_VERSION}\ntopic_id: {encoded}\n"
    replace_file(disk, f"{directory}/{file_names.PARTITION_METADATA}", text.encode(), sync=sync)


def _properties(data: bytes, separator: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in data.decode(errors="replace").splitlines():
        name, found, value = line.partition(separator)
        if found and not name.startswith("#"):
            values[name.strip()] = value.strip()
    return values
