"""The messages of DescribeTransactions, api key 65."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Int64, Message, Schema, String


class DescribeTransactionsRequest(Message):
    """Ask for the state of transactional ids."""

    schema: ClassVar[Schema] = Schema(api_key=65, versions="0", flexible="0+")
    transactional_ids: Annotated[list[str], Array("0+", of=String)] = []


class TopicData(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class TransactionState(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    transactional_id: Annotated[str, String("0+")] = ""
    transaction_state: Annotated[str, String("0+")] = ""
    transaction_timeout_ms: Annotated[int, Int32("0+")] = 0
    transaction_start_time_ms: Annotated[int, Int64("0+")] = 0
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    topics: Annotated[list[TopicData], Array("0+")] = []


class DescribeTransactionsResponse(Message):
    """State, producer and partitions of each transactional id."""

    schema: ClassVar[Schema] = Schema(api_key=65, versions="0", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    transaction_states: Annotated[list[TransactionState], Array("0+")] = []
