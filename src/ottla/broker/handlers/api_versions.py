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
)

FIRST_VERSION_WITH_CLIENT_NAME: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    """Answers every client's first question."""

    def __init__(self, served: Iterable[ApiKey]) -> None:
        self._versions = [
            ApiVersion(key, APIS[key].versions.first, APIS[key].versions.last)
            for key in sorted(served)
        ]

    async def handle(
        self, request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        if context.version >= FIRST_VERSION_WITH_CLIENT_NAME and not (
            _SOFTWARE.fullmatch(request.client_software_name)
            and _SOFTWARE.fullmatch(request.client_software_version)
        ):
            return self.refuse(request, ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(api_keys=self._versions)

    def refuse(self, _request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
        """Also the answer to a version nobody knows: then the range of this API must be in it."""
        own = [entry for entry in self._versions if entry.api_key == ApiKey.API_VERSIONS]
        return ApiVersionsResponse(code, own)
