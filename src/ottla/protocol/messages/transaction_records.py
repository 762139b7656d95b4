"""The records of __transaction_state."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int8, Int16, Int32, Int64, Message, Schema, String


class TransactionLogKey(Message):
    """Which transactional id."""

    schema: ClassVar[Schema] = Schema(record_type=0, versions="0")
    transactional_id: Annotated[str, String("0+")] = ""


class PartitionsSchema(Message):
    topic: Annotated[str, String("0+")] = ""
    partition_ids: Annotated[list[int], Array("0+", of=Int32)] = []


class TransactionLogValue(Message):
    """A transaction's producer, state and partitions."""

    schema: ClassVar[Schema] = Schema(record_type=0, versions="0-1", flexible="1+")
    producer_id: Annotated[int, Int64("0+")] = 0
    previous_producer_id: Annotated[int, Int64("1+", tag=0)] = -1
    next_producer_id: Annotated[int, Int64("1+", tag=1)] = -1
    producer_epoch: Annotated[int, Int16("0+")] = 0
    next_producer_epoch: Annotated[int, Int16("1+", tag=3)] = -1
    transaction_timeout_ms: Annotated[int, Int32("0+")] = 0
    transaction_status: Annotated[int, Int8("0+")] = 0
    transaction_partitions: Annotated[
        list[PartitionsSchema] | None, Array("0+", nullable="0+")
    ] = []
    transaction_last_update_timestamp_ms: Annotated[int, Int64("0+")] = 0
    transaction_start_timestamp_ms: Annotated[int, Int64("0+")] = 0
    client_transaction_version: Annotated[int, Int16("1+", tag=2)] = 0
