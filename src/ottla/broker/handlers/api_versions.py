"""ApiVersions: what this broker speaks, computed from the handlers it has, and which features the
cluster has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ottla.broker.cluster_view import ClusterView
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.api import APIS, ApiKey
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.settings.protocol_level import NEWEST

FIRST_VERSION_WITH_CLIENT_NAME: Final = 3
FIRST_VERSION_WITH_LEVEL_ZERO: Final = 4
"""Clients that ask in an earlier version fail at a feature whose lowest level is 0."""
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Answers every client's first question."""

    def __init__(
        self, served: Iterable[ApiKey], view: ClusterView, *, offers_two_phase_commit: bool
    ) -> None:
        self._view = view
        self._versions = []
        for key in sorted(served):
            versions = APIS[key].stable_versions
            if key is ApiKey.INIT_PRODUCER_ID and offers_two_phase_commit:
                versions = APIS[key].versions
            self._versions.append(ApiVersion(key, versions.first, versions.last))

    async def handle(
        self, request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        if context.version >= FIRST_VERSION_WITH_CLIENT_NAME and not (
            _SOFTWARE.fullmatch(request.client_software_name)
            and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(
            api_keys=self._versions,
            supported_features=self._supported(context.version),
            finalized_features_epoch=self._view.image.features_version,
            finalized_features=self._finalized(),
        )

    def _supported(self, version: int) -> list[SupportedFeatureKey]:
        lowest = 0 if version >= FIRST_VERSION_WITH_LEVEL_ZERO else 1
        level = self._view.settings.replication.protocol_level
        return [
            SupportedFeatureKey(name, lowest, highest)
            for name, highest in level.features.items()
            if highest >= lowest
        ]

    def _finalized(self) -> list[FinalizedFeatureKey]:
        levels, known = self._view.image.features, NEWEST.features
        return [
            FinalizedFeatureKey(name, levels[name], levels[name])
            for name in known
            if levels.get(name)
        ]

    def refuse(self, _request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
        """Also the answer to a version nobody knows: then the range of this API must be in it."""
        own = [entry for entry in self._versions if entry.api_key == ApiKey.API_VERSIONS]
        return ApiVersionsResponse(code, own)
