"""The messages of ListTransactions, api key 66."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Int16, Int32, Int64, Message, Schema, String


class ListTransactionsRequest(Message):
    """Ask which transactional ids this broker coordinates."""

    schema: ClassVar[Schema] = Schema(api_key=66, versions="0-2", flexible="0+")
    state_filters: Annotated[list[str], Array("0+", of=String)] = []
    producer_id_filters: Annotated[list[int], Array("0+", of=Int64)] = []
    duration_filter: Annotated[int, Int64("1+")] = -1
    transactional_id_pattern: Annotated[str | None, String("2+", nullable="2+")] = None


class TransactionState(Message):
    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    transaction_state: Annotated[str, String("0+")] = ""


class ListTransactionsResponse(Message):
    """The transactional ids and their states."""

    schema: ClassVar[Schema] = Schema(api_key=66, versions="0-2", flexible="0+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    unknown_state_filters: Annotated[list[str], Array("0+", of=String)] = []
    transaction_states: Annotated[list[TransactionState], Array("0+")] = []
