"""Writing the settings of what is neither topic nor broker: users, clients, addresses, groups.

They lie below /config as Kafka keeps them: users/alice, clients/<default>, users/alice/clients/app.
Knows no setting by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cluster import layout
from ottla.cluster.image import NO_NODE_VERSION, ConfigImage, Draft
from ottla.cluster.store import Create, SetData


def replace_entity_config(draft: Draft, entity: str, configs: Mapping[str, str]) -> None:
    """Let an entity have just these settings."""
    current = draft.entity_config(entity)
    if dict(configs) == dict(current.configs):
        return
    _create_parents(draft, entity)
    data = layout.encode(layout.ConfigNode(config=dict(configs)))
    path = layout.entity_config_path(entity)
    if current.version == NO_NODE_VERSION:
        draft.operations.append(Create(path, data))
    else:
        draft.operations.append(SetData(path, data, current.version))
    draft.put_entity_config(entity, ConfigImage(dict(configs), current.version + 1))


def _create_parents(draft: Draft, entity: str) -> None:
    """A user's clients lie below the user; the kinds themselves are always there."""
    parts = entity.split("/")
    for length in range(2, len(parts)):
        parent = "/".join(parts[:length])
        if draft.entity_config(parent).version == NO_NODE_VERSION:
            draft.operations.append(Create(layout.entity_config_path(parent)))
            draft.put_entity_config(parent, ConfigImage(version=0))
