"""The table of APIs agrees with the messages and with the reference list of keys and versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import UnknownApi
from ottla.protocol.api import APIS, ApiKey, api_of
from ottla.protocol.message import VersionRange
from ottla.protocol.plan import schema_of

REFERENCE = Path(__file__).parents[4] / "shared" / "kafka" / "schemas" / "apikeys.tsv"


def test_every_api_has_the_messages_of_its_key() -> None:
    for key, api in APIS.items():
        assert schema_of(api.request).api_key == key == schema_of(api.response).api_key
        assert schema_of(api.request).versions == schema_of(api.response).versions
        assert schema_of(api.request).flexible == schema_of(api.response).flexible


def test_keys_names_and_newest_versions_are_those_of_the_reference() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference list is not beside this checkout")
    rows = [line.split(" | ") for line in REFERENCE.read_text().splitlines() if " | " in line]
    expected = {}
    for row in rows:
        key, _, name = row[0].partition(" ")
        # What only brokers with ZooKeeper speak has no version in Kafka of today.
        versions = row[1] if row[1] != "none" else row[2]
        expected[int(key)] = (name, versions.split(" ")[0].rpartition("-")[2])
    for key, api in APIS.items():
        assert (api.name, str(api.versions.last)) == expected[key]


def test_an_api_is_found_by_its_number() -> None:
    assert api_of(0) is APIS[ApiKey.PRODUCE]
    with pytest.raises(UnknownApi):
        api_of(4)
    with pytest.raises(UnknownApi):
        api_of(-1)


def test_header_versions_follow_flexibility() -> None:
    produce = APIS[ApiKey.PRODUCE]
    assert [produce.request_header_version(version) for version in (8, 9)] == [1, 2]
    assert [produce.response_header_version(version) for version in (8, 9)] == [0, 1]
    assert APIS[ApiKey.SASL_HANDSHAKE].request_header_version(1) == 1
    assert APIS[ApiKey.API_VERSIONS].request_header_version(3) == 2
    assert APIS[ApiKey.API_VERSIONS].response_header_version(3) == 0


def test_unstable_versions_are_not_offered() -> None:
    assert APIS[ApiKey.INIT_PRODUCER_ID].stable_versions == VersionRange(0, 5)
    assert APIS[ApiKey.SHARE_FETCH].stable_versions == VersionRange(1, 2)
    assert APIS[ApiKey.PRODUCE].stable_versions == APIS[ApiKey.PRODUCE].versions
