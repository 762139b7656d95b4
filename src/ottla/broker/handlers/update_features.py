"""UpdateFeatures: raise the level of features that the whole cluster has. None is ever lowered."""

from __future__ import annotations

from ottla.broker.controller import Controller
from ottla.broker.request import RequestContext
from ottla.cluster.features import FeatureRefused, raise_features
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpdateFeaturesHandler:
    """Gives features the levels that every broker can have.

    One refused update refuses the request, as in Kafka.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def handle(
        self, request: UpdateFeaturesRequest, _context: RequestContext
    ) -> UpdateFeaturesResponse:
        wanted = {update.feature: update.max_version_level for update in request.feature_updates}
        try:
            await self._controller.change(
                lambda draft: raise_features(draft, wanted), validate_only=request.validate_only
            )
        except FeatureRefused as refusal:
            return UpdateFeaturesResponse(error_code=refusal.code, error_message=str(refusal))
        return UpdateFeaturesResponse(
            error_message=None,
            results=[UpdatableFeatureResult(name, ErrorCode.NONE, None) for name in wanted],
        )

    def refuse(self, _request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
        return UpdateFeaturesResponse(error_code=code, error_message=code.sentence)
