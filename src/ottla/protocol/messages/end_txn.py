"""The messages of EndTxn, api key 26."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Bool, Int16, Int32, Int64, Message, Schema, String


class EndTxnRequest(Message):
    """Commit or abort a transaction."""

    schema: ClassVar[Schema] = Schema(api_key=26, versions="0-5", flexible="3+")
    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    committed: Annotated[bool, Bool("0+")] = False


class EndTxnResponse(Message):
    """Whether the transaction ended, and the producer id and epoch to go on with."""

    schema: ClassVar[Schema] = Schema(api_key=26, versions="0-5", flexible="3+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    producer_id: Annotated[int, Int64("5+")] = -1
    producer_epoch: Annotated[int, Int16("5+")] = -1
