"""The semantics battery as data: all its cases."""

from streams.case import Case
from streams.join_cases import STREAM_JOINS
from streams.record_cases import AGGREGATES, PROCESSORS, STATELESS, WINDOWS
from streams.table_cases import TABLE_JOINS, TABLES

ALL: list[Case] = [
    *STATELESS,
    *AGGREGATES,
    *WINDOWS,
    *TABLES,
    *STREAM_JOINS,
    *TABLE_JOINS,
    *PROCESSORS,
]
