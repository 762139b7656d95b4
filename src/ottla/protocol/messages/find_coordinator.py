"""The messages of FindCoordinator, api key 10."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Message, Schema, String


class FindCoordinatorRequest(Message):
    """Ask which broker coordinates a group, a transactional id or a share partition."""

    schema: ClassVar[Schema] = Schema(api_key=10, versions="0-6", flexible="3+")
    key: Annotated[str, String("0-3")] = ""
    key_type: Annotated[int, Int8("1+")] = 0
    coordinator_keys: Annotated[list[str], Array("4+", of=String)] = []


class Coordinator(Message):
    key: Annotated[str, String("4+")] = ""
    node_id: Annotated[int, Int32("4+")] = 0
    host: Annotated[str, String("4+")] = ""
    port: Annotated[int, Int32("4+")] = 0
    error_code: Annotated[int, Int16("4+")] = 0
    error_message: Annotated[str | None, String("4+", nullable="4+")] = ""


class FindCoordinatorResponse(Message):
    """The coordinator of each key."""

    schema: ClassVar[Schema] = Schema(api_key=10, versions="0-6", flexible="3+")
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0-3")] = 0
    error_message: Annotated[str | None, String("1-3", nullable="1-3")] = ""
    node_id: Annotated[int, Int32("0-3")] = 0
    host: Annotated[str, String("0-3")] = ""
    port: Annotated[int, Int32("0-3")] = 0
    coordinators: Annotated[list[Coordinator], Array("4+")] = []
