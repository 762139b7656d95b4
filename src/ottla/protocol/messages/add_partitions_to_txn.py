"""The messages of AddPartitionsToTxn, api key 24."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int16, Int32, Int64, Message, Schema, String


class AddPartitionsToTxnTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class AddPartitionsToTxnTransaction(Message):
    transactional_id: Annotated[str, String("4+")] = ""
    producer_id: Annotated[int, Int64("4+")] = 0
    producer_epoch: Annotated[int, Int16("4+")] = 0
    verify_only: Annotated[bool, Bool("4+")] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], Array("4+")] = []


class AddPartitionsToTxnRequest(Message):
    """Add partitions to a transaction before writing to them, or verify that they were added."""

    schema: ClassVar[Schema] = Schema(api_key=24, versions="0-5", flexible="3+")
    transactions: Annotated[list[AddPartitionsToTxnTransaction], Array("4+")] = []
    v3_and_below_transactional_id: Annotated[str, String("0-3")] = ""
    v3_and_below_producer_id: Annotated[int, Int64("0-3")] = 0
    v3_and_below_producer_epoch: Annotated[int, Int16("0-3")] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], Array("0-3")] = []


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    partition_error_code: Annotated[int, Int16("0+")] = 0


class AddPartitionsToTxnTopicResult(Message):
    name: Annotated[str, String("0+")] = ""
    results_by_partition: Annotated[list[AddPartitionsToTxnPartitionResult], Array("0+")] = []


class AddPartitionsToTxnResult(Message):
    transactional_id: Annotated[str, String("4+")] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], Array("4+")] = []


class AddPartitionsToTxnResponse(Message):
    """Whether each partition is part of the transaction."""

    schema: ClassVar[Schema] = Schema(api_key=24, versions="0-5", flexible="3+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("4+")] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], Array("4+")] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], Array("0-3")] = []
