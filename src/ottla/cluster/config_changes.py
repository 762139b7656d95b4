"""Changes of the settings of topics, brokers and groups: replaced as a whole, or one by one.

As in changes.py, a wish is checked before the draft is touched, and nothing here waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec
from msgspec.structs import replace

from ottla.cluster import layout
from ottla.cluster.changes import topic_of
from ottla.cluster.entity_configs import replace_entity_config
from ottla.cluster.image import NO_NODE_VERSION, ConfigImage, Draft, TopicImage
from ottla.cluster.store import Create, SetData
from ottla.errors import InvalidConfig, InvalidRequest
from ottla.settings import BrokerSettings, TopicSettings
from ottla.settings.broker import broker_declarations
from ottla.settings.coordination import GroupSettings
from ottla.settings.declare import Declared, Kind, entries, render, unknown
from ottla.settings.describe import check_live
from ottla.settings.group import OwnGroupSettings, group_declarations
from ottla.settings.topic import topic_declarations


class AlterOperation(IntEnum):
    """What IncrementalAlterConfigs does to one setting, by the code on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(msgspec.Struct, frozen=True):
    """One setting's change. A deletion needs no value."""

    name: str
    operation: AlterOperation
    value: str | None = None


def replace_topic_config(
    draft: Draft, name: str, configs: Mapping[str, str], settings: BrokerSettings
) -> TopicImage:
    """Let a topic have just these overrides; the topic as it will be."""
    topic = topic_of(draft, name)
    TopicSettings.from_overrides(configs, settings)
    if dict(configs) == dict(topic.configs):
        return topic
    version = _write(draft, layout.topic_config_path(name), configs, topic.config_version)
    changed = replace(topic, configs=dict(configs), config_version=version)
    draft.put_topic(changed)
    return changed


def alter_topic_config(
    draft: Draft, name: str, alterations: Sequence[Alteration], settings: BrokerSettings
) -> TopicImage:
    """Change some of a topic's overrides; the topic as it will be."""
    topic = topic_of(draft, name)
    defaults = settings.topic_defaults
    known = topic_declarations()

    def in_force(declared: Declared) -> str:
        return render(getattr(defaults, declared.attribute)) or ""

    wanted = dict(topic.configs)
    for each in once_each(alterations):
        declared = _known(each, known, scope="topic")
        if declared is not None:
            _alter(wanted, each, declared, wanted.get(each.name, in_force(declared)))
    return replace_topic_config(draft, name, wanted, settings)


def replace_broker_config(draft: Draft, broker: str, configs: Mapping[str, str]) -> ConfigImage:
    """Let a broker (its id as text, or layout.DEFAULT_ENTITY) have just these run-time settings."""
    current = draft.broker_config(broker)
    check_live(configs)
    if dict(configs) == dict(current.configs):
        return current
    version = _write(draft, layout.broker_config_path(broker), configs, current.version)
    changed = ConfigImage(dict(configs), version)
    draft.put_broker_config(broker, changed)
    return changed


def alter_broker_config(
    draft: Draft, broker: str, alterations: Sequence[Alteration]
) -> ConfigImage:
    """Change some of a broker's run-time settings."""
    known = broker_declarations()
    wanted = dict(draft.broker_config(broker).configs)
    for each in once_each(alterations):
        declared = _known(each, known, scope="broker")
        if declared is not None:
            _alter(wanted, each, declared, wanted.get(each.name, render(declared.default) or ""))
    return replace_broker_config(draft, broker, wanted)


def settle_shared_settings(draft: Draft, settings: BrokerSettings) -> None:
    """Fix what all brokers of a new cluster must agree on: min.insync.replicas, as Kafka 4.1 does.

    From then on it is the cluster's, changed at run time, and no longer each broker's own file's.
    """
    if draft.broker_config(layout.DEFAULT_ENTITY).version == NO_NODE_VERSION:
        count = str(settings.topic_defaults.min_insync_replicas)
        replace_broker_config(draft, layout.DEFAULT_ENTITY, {"min.insync.replicas": count})


def replace_group_config(
    draft: Draft, group_id: str, configs: Mapping[str, str], settings: GroupSettings
) -> None:
    """Let a group have just these settings of its own. The group need not be there yet."""
    if not group_id:
        raise InvalidRequest("a group's name cannot be empty")
    OwnGroupSettings.from_overrides(configs, settings)
    replace_entity_config(draft, layout.group_entity(group_id), configs)


def alter_group_config(
    draft: Draft, group_id: str, alterations: Sequence[Alteration], settings: GroupSettings
) -> None:
    """Change some of a group's own settings."""
    known = group_declarations()
    wanted = dict(draft.entity_config(layout.group_entity(group_id)).configs)
    for each in once_each(alterations):
        declared = _known(each, known, scope="group")
        if declared is not None:
            _alter(wanted, each, declared, wanted.get(each.name, render(declared.default) or ""))
    replace_group_config(draft, group_id, wanted, settings)


def once_each(alterations: Sequence[Alteration]) -> Sequence[Alteration]:
    """The alterations, unless two are of the same setting."""
    seen: set[str] = set()
    for each in alterations:
        if each.name in seen:
            raise InvalidRequest(f"the setting {each.name} is changed twice in one request")
        seen.add(each.name)
    return alterations


def _known(alteration: Alteration, known: Mapping[str, Declared], *, scope: str) -> Declared | None:
    """What is to be altered; None where something is deleted that nobody can have set."""
    declared = known.get(alteration.name)
    if declared is None and alteration.operation is not AlterOperation.DELETE:
        raise unknown(alteration.name, known, scope=scope)
    return declared


def _alter(
    wanted: dict[str, str], alteration: Alteration, declared: Declared, in_force: str
) -> None:
    name, value = alteration.name, alteration.value
    if alteration.operation is AlterOperation.DELETE:
        wanted.pop(name, None)
        return
    if value is None:
        raise InvalidRequest(f"the setting {name} is given no value")
    if alteration.operation is AlterOperation.SET:
        wanted[name] = value
        return
    if declared.setting.kind is not Kind.LIST:
        raise InvalidConfig(f"{name} is not a list: it can be set or deleted, not added to")
    current = entries(in_force)
    if alteration.operation is AlterOperation.APPEND:
        result = [*current, *(entry for entry in entries(value) if entry not in current)]
    else:
        taken = entries(value)
        result = [entry for entry in current if entry not in taken]
    wanted[name] = ",".join(result)


def _write(draft: Draft, path: str, configs: Mapping[str, str], version: int) -> int:
    """Write a config node that has the given version; the version it will have."""
    data = layout.encode(layout.ConfigNode(config=dict(configs)))
    if version == NO_NODE_VERSION:
        draft.operations.append(Create(path, data))
    else:
        draft.operations.append(SetData(path, data, version))
    return version + 1
