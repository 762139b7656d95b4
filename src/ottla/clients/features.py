"""The cluster's features: the levels its brokers support, and the ones that are in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from ottla.clients.broker_connection import SOFTWARE_NAME
from ottla.clients.client import ANY_BROKER, CONTROLLER, Client
from ottla.clients.failures import check_answer
from ottla.model.ids import BrokerId
from ottla.protocol.message import VersionRange
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class FeatureChange(IntEnum):
    """Which way a level may go."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """Only where nothing is lost by it."""
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature by name; `level` is 0 where it is not in force."""

    name: str
    supported: VersionRange | None
    """What the broker that was asked could do."""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Features:
    """All features, and how often the levels were changed."""

    epoch: int
    by_name: Mapping[str, Feature]


async def describe_features(client: Client, broker: BrokerId = ANY_BROKER) -> Features:
    """Asks a broker what it supports and what the cluster has agreed on."""
    version = client.options.connection.software_version
    request = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=version
    )

    async def attempt() -> Features:
        response = await client.call(request, ApiVersionsResponse, to=broker)
        check_answer(response.error_code, "the features")
        return _features(response)

    return await client.retrying(attempt)


def _features(response: ApiVersionsResponse) -> Features:
    supported = {
        each.name: VersionRange(each.min_version, each.max_version)
        for each in response.supported_features
    }
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    names = sorted({*supported, *levels})
    return Features(
        response.finalized_features_epoch,
        {name: Feature(name, supported.get(name), levels.get(name, 0)) for name in names},
    )


async def update_features(
    client: Client,
    levels: Mapping[str, int],
    *,
    change: FeatureChange = FeatureChange.UPGRADE,
    validate_only: bool = False,
) -> None:
    """Sets the levels of features, all of them or none; a level of 0 turns one off."""
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(
                feature=name,
                max_version_level=level,
                allow_downgrade=change is not FeatureChange.UPGRADE,
                upgrade_type=int(change),
            )
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )

    async def attempt() -> None:
        # Brokers that know no `validate_only` would do what is only to be tried.
        response = await client.call(
            request, UpdateFeaturesResponse, to=CONTROLLER, at_least=1 if validate_only else 0
        )
        check_answer(response.error_code, "the features", response.error_message)
        for row in response.results:
            check_answer(row.error_code, f"feature {row.feature!r}", row.error_message)

    await client.retrying(attempt)
