"""Which levels a cluster may have: of the brokers' own protocol, and of features clients use.

Invariants:
1. No level in force is higher than what every registered broker can have.
2. No level is ever lowered: what was written at a level may need it to be read.

The protocol's level in force is the highest that any broker has been set to speak. Who does not
know it may not join; who is set to less may not either. Does not know what a level means.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.cluster import layout
from ottla.cluster.image import NO_NODE_VERSION, ClusterImage, Draft
from ottla.cluster.store import Create, MetadataStore, SetData
from ottla.errors import ConfigError, ErrorCode, OttlaError
from ottla.model.ids import BrokerId
from ottla.settings.protocol_level import (
    LEVELS,
    NEWEST,
    PROTOCOL_FEATURE,
    ProtocolLevel,
    name_of_level,
)

SETTING = "inter.broker.protocol.version"


class FeatureRefused(OttlaError):
    """A feature cannot have the level that was asked for."""

    code = ErrorCode.INVALID_UPDATE_VERSION

    def __init__(self, feature: str, level: int, reason: str) -> None:
        self.feature = feature
        self.level = level
        super().__init__(f"{feature} cannot have level {level}: {reason}")


def registered_features(level: ProtocolLevel) -> dict[str, dict[str, int]]:
    """What a broker set to this level says of itself: what its program and its setting allow."""
    highest = {PROTOCOL_FEATURE: NEWEST.number, **level.features}
    return {
        name: {"min_version": 0, "max_version": max_version}
        for name, max_version in highest.items()
    }


def begin_to_speak(draft: Draft, broker_id: BrokerId, level: ProtocolLevel) -> None:
    """Let a broker speak a level; ConfigError where it must not.

    The first broker of a cluster gives it all features of the level. Later they are raised on
    request only, when all brokers have them.
    """
    check_understood(draft.features, level)
    if draft.features.get(PROTOCOL_FEATURE, 0) >= level.number:
        return
    check_others_understand(draft.base, broker_id, level)
    levels = draft.features if draft.features else level.features
    _put(draft, {**levels, PROTOCOL_FEATURE: level.number})


def stay_with(draft: Draft, before: Mapping[str, int], level: ProtocolLevel) -> None:
    """Take back that a level is spoken, before anybody did: the levels are those of before."""
    if draft.features.get(PROTOCOL_FEATURE) == level.number and before:
        _put(draft, before)


def check_understood(features: Mapping[str, int], level: ProtocolLevel) -> None:
    """ConfigError unless a broker set to `level` understands all that the cluster may say."""
    spoken = features.get(PROTOCOL_FEATURE, 0)
    if spoken > NEWEST.number:
        raise ConfigError(
            SETTING,
            f"the cluster speaks a newer version (level {spoken}) than this program knows"
            f" ({NEWEST.name}, level {NEWEST.number}), and cannot go back",
            "start the newer program",
        )
    if spoken > level.number:
        raise ConfigError(
            SETTING,
            f"the cluster speaks {name_of_level(spoken)} already, and cannot go back to"
            f" {level.name}",
            f"set it to {name_of_level(spoken)} or leave it out",
        )


def check_others_understand(image: ClusterImage, broker_id: BrokerId, level: ProtocolLevel) -> None:
    """ConfigError where a registered broker runs a program that does not know `level`."""
    for broker in image.brokers.values():
        known = broker.features.get(PROTOCOL_FEATURE, LEVELS[0].number)
        if broker.id != broker_id and known < level.number:
            raise ConfigError(
                SETTING,
                f"{level.name} cannot be spoken: broker {broker.id} runs a program that knows"
                f" {name_of_level(known)} at most",
                f"set it to {name_of_level(known)} until every broker runs the new program",
            )


async def confirm_understood(store: MetadataStore, level: ProtocolLevel) -> None:
    """Look again after registering: from then on nobody begins to speak what this broker does not
    know, but somebody may just have."""
    node = await store.get(layout.FEATURES)
    if node is not None:
        found = layout.decode(layout.FeatureNode, node.data, layout.FEATURES)
        check_understood(found.features, level)


def raise_features(draft: Draft, wanted: Mapping[str, int]) -> None:
    """Give features new levels; FeatureRefused, and nothing is changed, where one cannot be."""
    for feature, level in wanted.items():
        _check_raise(draft, feature, level)
    levels = {**draft.features, **wanted}
    if levels != draft.features:
        _put(draft, levels)


def _check_raise(draft: Draft, feature: str, level: int) -> None:
    if feature not in NEWEST.features:
        raise FeatureRefused(feature, level, "nobody knows such a feature")
    in_force = draft.features.get(feature, 0)
    if level < in_force:
        raise FeatureRefused(
            feature, level, f"it has level {in_force}, and no level is ever lowered"
        )
    for broker in draft.base.brokers.values():
        highest = broker.features.get(feature, 0)
        if highest < level:
            raise FeatureRefused(
                feature,
                level,
                f"broker {broker.id} can have {highest} at most; run the new program there and"
                f" raise its {SETTING} first",
            )


def _put(draft: Draft, levels: Mapping[str, int]) -> None:
    data = layout.encode(layout.FeatureNode(features=dict(levels)))
    if draft.features_version == NO_NODE_VERSION:
        draft.operations.append(Create(layout.FEATURES, data))
    else:
        draft.operations.append(SetData(layout.FEATURES, data, draft.features_version))
    draft.put_features(levels)
