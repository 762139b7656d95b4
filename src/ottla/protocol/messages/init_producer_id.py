"""The messages of InitProducerId, api key 22."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Bool, Int16, Int32, Int64, Message, Schema, String


class InitProducerIdRequest(Message):
    """Ask for a producer id and epoch, ending what an earlier instance left open."""

    schema: ClassVar[Schema] = Schema(api_key=22, versions="0-6", flexible="2+", unstable="6")
    transactional_id: Annotated[str | None, String("0+", nullable="0+")] = ""
    transaction_timeout_ms: Annotated[int, Int32("0+")] = 0
    producer_id: Annotated[int, Int64("3+")] = -1
    producer_epoch: Annotated[int, Int16("3+")] = -1
    enable2_pc: Annotated[bool, Bool("6+")] = False
    keep_prepared_txn: Annotated[bool, Bool("6+")] = False


class InitProducerIdResponse(Message):
    """The producer id and epoch to write with."""

    schema: ClassVar[Schema] = Schema(api_key=22, versions="0-6", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    producer_id: Annotated[int, Int64("0+")] = -1
    producer_epoch: Annotated[int, Int16("0+")] = 0
    ongoing_txn_producer_id: Annotated[int, Int64("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[int, Int16("6+")] = -1
