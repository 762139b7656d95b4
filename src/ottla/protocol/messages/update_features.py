"""The messages of UpdateFeatures, api key 57."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int8, Int16, Int32, Message, Schema, String


class FeatureUpdateKey(Message):
    feature: Annotated[str, String("0+")] = ""
    max_version_level: Annotated[int, Int16("0+")] = 0
    allow_downgrade: Annotated[bool, Bool("0")] = False
    upgrade_type: Annotated[int, Int8("1+")] = 1


class UpdateFeaturesRequest(Message):
    """Change the levels of the cluster's features."""

    schema: ClassVar[Schema] = Schema(api_key=57, versions="0-2", flexible="0+")
    timeout_ms: Annotated[int, Int32("0+")] = 60000
    feature_updates: Annotated[list[FeatureUpdateKey], Array("0+")] = []
    validate_only: Annotated[bool, Bool("1+")] = False


class UpdatableFeatureResult(Message):
    feature: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""


class UpdateFeaturesResponse(Message):
    """Whether each feature was changed."""

    schema: ClassVar[Schema] = Schema(api_key=57, versions="0-2", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    results: Annotated[list[UpdatableFeatureResult], Array("0-1")] = []
