"""ApiVersions: what this broker speaks, computed from the handlers it has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

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

FIRST_VERSION_WITH_CLIENT_NAME: Final = 3
TRANSACTIONS: Final = "transaction.version"
TRANSACTION_VERSION: Final = 2
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Answers every client's first question."""

    def __init__(self, served: Iterable[ApiKey], *, offers_two_phase_commit: bool) -> None:
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
            supported_features=[SupportedFeatureKey(TRANSACTIONS, 0, TRANSACTION_VERSION)],
            finalized_features_epoch=0,
            finalized_features=[
                FinalizedFeatureKey(TRANSACTIONS, TRANSACTION_VERSION, TRANSACTION_VERSION)
            ],
        )

    def refuse(self, _request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
        """Also the answer to a version nobody knows: then the range of this API must be in it."""
        own = [entry for entry in self._versions if entry.api_key == ApiKey.API_VERSIONS]
        return ApiVersionsResponse(code, own)
