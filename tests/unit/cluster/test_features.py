"""Levels only rise, and only to what every registered broker can have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from ottla.broker.spoken_versions import speak
from ottla.cluster import layout
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.features import (
    FeatureRefused,
    begin_to_speak,
    check_understood,
    confirm_understood,
    raise_features,
    registered_features,
)
from ottla.cluster.image import BrokerImage, ClusterImage, Draft, image_from
from ottla.cluster.metadata import ClusterMetadata
from ottla.cluster.store import ROOT, Create, SetData
from ottla.errors import ConfigError, ErrorCode
from ottla.model.ids import BrokerId
from ottla.settings.protocol_level import (
    GROUP_FEATURE,
    LEVELS,
    PROTOCOL_FEATURE,
    TRANSACTION_FEATURE,
    ProtocolLevel,
)

OLD, NEW = LEVELS
ME, OTHER = BrokerId(1), BrokerId(2)
OLD_PROGRAM = {PROTOCOL_FEATURE: OLD.number, **OLD.features}
NEW_PROGRAM_SPEAKING_OLD = {PROTOCOL_FEATURE: NEW.number, **OLD.features}
NEW_PROGRAM = {PROTOCOL_FEATURE: NEW.number, **NEW.features}


def a_cluster(
    other: Mapping[str, int], features: Mapping[str, int] | None = None, *, version: int = 3
) -> Draft:
    """Two brokers: this one has the new program at its newest level."""
    brokers = {
        ME: BrokerImage(ME, (), None, 1, NEW_PROGRAM),
        OTHER: BrokerImage(OTHER, (), None, 2, other),
    }
    if features is None:
        return Draft(ClusterImage(brokers=brokers))
    return Draft(ClusterImage(brokers=brokers, features=features, features_version=version))


def at(level: ProtocolLevel) -> dict[str, int]:
    return {PROTOCOL_FEATURE: level.number, **level.features}


def test_the_first_broker_gives_a_cluster_all_that_its_level_has() -> None:
    draft = Draft(ClusterImage())
    begin_to_speak(draft, ME, NEW)
    (operation,) = draft.operations
    assert isinstance(operation, Create)
    assert operation.path == layout.FEATURES
    assert draft.image().features == at(NEW)
    assert draft.image().features_version == 0


def test_raising_the_protocol_leaves_the_features_to_be_raised_on_request() -> None:
    draft = a_cluster(NEW_PROGRAM_SPEAKING_OLD, at(OLD))
    begin_to_speak(draft, ME, NEW)
    (operation,) = draft.operations
    assert isinstance(operation, SetData)
    assert operation.version == 3
    assert draft.features == {**OLD.features, PROTOCOL_FEATURE: NEW.number}


def test_who_speaks_what_is_spoken_changes_nothing() -> None:
    draft = a_cluster(NEW_PROGRAM, at(NEW))
    begin_to_speak(draft, ME, NEW)
    assert draft.operations == []


@pytest.mark.parametrize("other", [OLD_PROGRAM, {}])
def test_nobody_speaks_what_a_registered_broker_does_not_know(other: dict[str, int]) -> None:
    draft = a_cluster(other, at(OLD))
    with pytest.raises(ConfigError, match="broker 2 runs a program that knows"):
        begin_to_speak(draft, ME, NEW)
    assert draft.operations == []
    begin_to_speak(draft, ME, OLD)
    assert draft.operations == []


def test_what_this_broker_was_before_it_was_upgraded_is_not_in_its_own_way() -> None:
    draft = Draft(
        ClusterImage(
            brokers={ME: BrokerImage(ME, (), None, 1, OLD_PROGRAM)},
            features=at(OLD),
            features_version=0,
        )
    )
    begin_to_speak(draft, ME, NEW)
    assert draft.features[PROTOCOL_FEATURE] == NEW.number


def test_a_spoken_level_is_not_gone_back_from() -> None:
    with pytest.raises(ConfigError, match=r"speaks 4\.3 already, and cannot go back to 3\.8"):
        begin_to_speak(a_cluster(NEW_PROGRAM, at(NEW)), ME, OLD)


def test_a_program_that_does_not_know_the_spoken_level_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"newer version \(level 9\) than this program"):
        check_understood({PROTOCOL_FEATURE: 9}, NEW)


def test_features_rise_when_every_broker_has_them() -> None:
    spoken = {**OLD.features, PROTOCOL_FEATURE: NEW.number}
    draft = a_cluster(NEW_PROGRAM, spoken)
    raise_features(draft, {TRANSACTION_FEATURE: 2, GROUP_FEATURE: 1})
    assert len(draft.operations) == 1
    assert draft.features == at(NEW)
    again = a_cluster(NEW_PROGRAM, at(NEW))
    raise_features(again, {TRANSACTION_FEATURE: 2})
    assert again.operations == []


@pytest.mark.parametrize("other", [OLD_PROGRAM, NEW_PROGRAM_SPEAKING_OLD, {}])
def test_a_feature_waits_for_the_last_broker(other: dict[str, int]) -> None:
    draft = a_cluster(other, {**OLD.features, PROTOCOL_FEATURE: NEW.number})
    with pytest.raises(FeatureRefused, match="broker 2 can have 0 at most") as refused:
        raise_features(draft, {TRANSACTION_FEATURE: 2})
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert draft.operations == []


def test_one_refused_feature_refuses_all() -> None:
    draft = a_cluster(NEW_PROGRAM, {**OLD.features, PROTOCOL_FEATURE: NEW.number})
    with pytest.raises(FeatureRefused, match="nobody knows such a feature"):
        raise_features(draft, {TRANSACTION_FEATURE: 2, "no.such.feature": 1})
    with pytest.raises(FeatureRefused, match="broker 1 can have 2 at most"):
        raise_features(draft, {GROUP_FEATURE: 1, TRANSACTION_FEATURE: 3})
    with pytest.raises(FeatureRefused, match="nobody knows such a feature"):
        raise_features(draft, {PROTOCOL_FEATURE: NEW.number})
    assert draft.operations == []


def test_no_feature_is_lowered() -> None:
    with pytest.raises(FeatureRefused, match="no level is ever lowered"):
        raise_features(a_cluster(NEW_PROGRAM, at(NEW)), {TRANSACTION_FEATURE: 1})


def test_a_registration_tells_what_program_and_setting_allow() -> None:
    told = {name: levels["max_version"] for name, levels in registered_features(OLD).items()}
    assert told == NEW_PROGRAM_SPEAKING_OLD


def a_registration(level: ProtocolLevel, *, newest: int) -> layout.BrokerNode:
    features = registered_features(level)
    features[PROTOCOL_FEATURE]["max_version"] = newest
    return layout.BrokerNode(
        host="h",
        port=1,
        endpoints=("PLAINTEXT://h:1",),
        timestamp="0",
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
        features=features,
    )


def test_levels_and_what_brokers_can_have_are_read_back_from_the_store() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        metadata = await ClusterMetadata.open(store, cluster_id="c")
        await speak(metadata, ME, NEW)
        registered = await metadata.register(ME, a_registration(NEW, newest=NEW.number))
        assert registered.features == NEW_PROGRAM
        read = image_from(await store.read_all(ROOT))
        assert (read.features, read.features_version) == (at(NEW), 0)
        assert read.brokers == {ME: registered}
        await confirm_understood(store, NEW)
        with pytest.raises(ConfigError, match="cannot go back"):
            await confirm_understood(store, OLD)

    asyncio.run(scenario())


def test_an_older_broker_that_registers_while_the_level_is_raised_keeps_it_down() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(None)
        metadata = await ClusterMetadata.open(store, cluster_id="c")
        await speak(metadata, ME, OLD)
        older = await ClusterMetadata.open(store, cluster_id="c")
        # Behind the back of this broker, whose picture does not show it yet.
        await older.register(OTHER, a_registration(OLD, newest=OLD.number))
        with pytest.raises(ConfigError, match="broker 2 runs a program that knows"):
            await speak(metadata, ME, NEW)
        read = image_from(await store.read_all(ROOT))
        assert read.features == at(OLD)

    asyncio.run(scenario())
