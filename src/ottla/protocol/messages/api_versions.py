"""The messages of ApiVersions, api key 18."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int16, Int32, Int64, Message, Schema, String


class ApiVersionsRequest(Message):
    """Ask which APIs and versions the broker speaks; says who is asking."""

    schema: ClassVar[Schema] = Schema(api_key=18, versions="0-5", flexible="3+")
    client_software_name: Annotated[str, String("3+")] = ""
    client_software_version: Annotated[str, String("3+")] = ""
    cluster_id: Annotated[str | None, String("5+", nullable="5+")] = None
    node_id: Annotated[int, Int32("5+")] = -1


class ApiVersion(Message):
    api_key: Annotated[int, Int16("0+")] = 0
    min_version: Annotated[int, Int16("0+")] = 0
    max_version: Annotated[int, Int16("0+")] = 0


class SupportedFeatureKey(Message):
    name: Annotated[str, String("3+")] = ""
    min_version: Annotated[int, Int16("3+")] = 0
    max_version: Annotated[int, Int16("3+")] = 0


class FinalizedFeatureKey(Message):
    name: Annotated[str, String("3+")] = ""
    max_version_level: Annotated[int, Int16("3+")] = 0
    min_version_level: Annotated[int, Int16("3+")] = 0


class ApiVersionsResponse(Message):
    """The APIs with their versions, and the features of the cluster."""

    schema: ClassVar[Schema] = Schema(api_key=18, versions="0-5", flexible="3+")
    error_code: Annotated[int, Int16("0+")] = 0
    api_keys: Annotated[list[ApiVersion], Array("0+")] = []
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    supported_features: Annotated[list[SupportedFeatureKey], Array("3+", tag=0)] = []
    finalized_features_epoch: Annotated[int, Int64("3+", tag=1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], Array("3+", tag=2)] = []
    zk_migration_ready: Annotated[bool, Bool("3+", tag=3)] = False
