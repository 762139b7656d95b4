"""`ottla cluster features` as a user runs it while a broker is upgraded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli.cluster_features import Level, levels_of
from ottla.clients.features import Feature, Features
from ottla.protocol.message import VersionRange
from ottla.settings.protocol_level import LEVELS
from ottla.testing import Broker
from support.command_line import ottla_here

OLD = {"inter.broker.protocol.version": LEVELS[0].name}


def test_features_are_raised_once_the_setting_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(data=tmp_path, settings=OLD) as broker:
        ottla = ottla_here(broker.bootstrap_servers, monkeypatch)
        shown = ottla("cluster", "features", "--json")
        assert all(each["level"] == each["highest"] == 0 for each in json.loads(shown.out))
        assert ottla("cluster", "features", "--raise").code == 0
    with Broker(data=tmp_path) as broker:
        ottla = ottla_here(broker.bootstrap_servers, monkeypatch)
        assert "--raise" in ottla("cluster", "features").out
        assert ottla("cluster", "features", "--raise").code == 0
        shown = ottla("cluster", "features", "--json")
        levels = {each["name"]: each["level"] for each in json.loads(shown.out)}
        assert levels == dict(LEVELS[-1].features)
        assert "--raise" not in ottla("cluster", "features").out


def told(**features: tuple[int, int]) -> Features:
    """What a broker says: for each feature the highest level it can have, and the one in force."""
    return Features(
        1,
        {
            name: Feature(name, VersionRange(0, highest), level)
            for name, (highest, level) in features.items()
        },
    )


def test_no_more_is_wanted_than_every_broker_can_have() -> None:
    brokers = [told(a=(3, 1), b=(2, 0)), told(a=(2, 1), b=(2, 0)), told(a=(2, 1))]
    assert levels_of(brokers) == [Level("a", 1, 2), Level("b", 0, 0)]
