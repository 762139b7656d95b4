"""Control records in a partition, and the entries of its transaction index."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Int16, Int32, Int64, Message, Schema


class AbortedTxn(Message):
    """One entry of a transaction index: an aborted transaction's extent."""

    schema: ClassVar[Schema] = Schema(versions="0")
    producer_id: Annotated[int, Int64("0+")] = 0
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0
    last_stable_offset: Annotated[int, Int64("0+")] = 0


class ControlRecordTypeSchema(Message):
    """The key of a control record."""

    schema: ClassVar[Schema] = Schema(versions="0")
    type: Annotated[int, Int16("0+")] = 0


class EndTxnMarker(Message):
    """The value of a control record that ends a transaction."""

    schema: ClassVar[Schema] = Schema(versions="0")
    coordinator_epoch: Annotated[int, Int32("0+")] = 0
