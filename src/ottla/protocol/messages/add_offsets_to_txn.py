"""The messages of AddOffsetsToTxn, api key 25."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Int16, Int32, Int64, Message, Schema, String


class AddOffsetsToTxnRequest(Message):
    """Add a group's offsets to a transaction."""

    schema: ClassVar[Schema] = Schema(api_key=25, versions="0-4", flexible="3+")
    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    group_id: Annotated[str, String("0+")] = ""


class AddOffsetsToTxnResponse(Message):
    """Whether the group is part of the transaction."""

    schema: ClassVar[Schema] = Schema(api_key=25, versions="0-4", flexible="3+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
