"""UpdateFeatures: every feature is at its highest level, where it stays."""

from __future__ import annotations

from ottla.broker.handlers.api_versions import TRANSACTION_VERSION, TRANSACTIONS
from ottla.broker.request import RequestContext
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpdateFeaturesHandler:
    """Grants what is so already. One refused update refuses the request, as in Kafka."""

    async def handle(
        self, request: UpdateFeaturesRequest, _context: RequestContext
    ) -> UpdateFeaturesResponse:
        refused = [update for update in request.feature_updates if not _is_in_force(update)]
        if refused:
            code = ErrorCode.INVALID_UPDATE_VERSION
            names = ", ".join(f"{each.feature} {each.max_version_level}" for each in refused)
            return UpdateFeaturesResponse(
                error_code=code, error_message=f"this broker cannot have {names}"
            )
        return UpdateFeaturesResponse(
            error_message=None,
            results=[
                UpdatableFeatureResult(update.feature, ErrorCode.NONE, None)
                for update in request.feature_updates
            ],
        )

    def refuse(self, _request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
        return UpdateFeaturesResponse(error_code=code, error_message=code.sentence)


def _is_in_force(update: FeatureUpdateKey) -> bool:
    return update.feature == TRANSACTIONS and update.max_version_level == TRANSACTION_VERSION
