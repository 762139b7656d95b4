"""Kafka Streams for Python people: streams, tables, windows and joins as a topology.

Draw a topology with `StreamsBuilder`, look at it (`print(topology)`), test it without brokers
(`TopologyTestDriver`), run it on Spark (`Streams`).
"""

from typing import TYPE_CHECKING, Any

from ottla.streams.builder import StreamsBuilder
from ottla.streams.cogrouped import CogroupedStream
from ottla.streams.driver import TopologyTestDriver
from ottla.streams.engine.processing import ProcessorContext
from ottla.streams.engine.records import Record
from ottla.streams.engine.wiring import DropReason
from ottla.streams.expressions import Expression, col, concat, fields, key, lit, value
from ottla.streams.failures import BufferOverflow, ProcessingFailed, TopologyError
from ottla.streams.global_table import GlobalKTable
from ottla.streams.grouped import KGroupedStream, WindowedKStream
from ottla.streams.grouped_table import KGroupedTable
from ottla.streams.serdes import FunctionSerde, Serde, SessionWindowedSerde, TimeWindowedSerde
from ottla.streams.store_spec import StoreSpec, key_value_store, window_store
from ottla.streams.stream import KStream
from ottla.streams.suppression import until_time_limit, until_window_closes
from ottla.streams.table import KTable
from ottla.streams.topology import Topology
from ottla.streams.windowed import Windowed
from ottla.streams.windows import hopping, join_within, session, sliding, tumbling

if TYPE_CHECKING:
    from ottla.streams.application import Streams as Streams

__all__ = [
    "BufferOverflow",
    "CogroupedStream",
    "DropReason",
    "Expression",
    "FunctionSerde",
    "GlobalKTable",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "ProcessingFailed",
    "ProcessorContext",
    "Record",
    "Serde",
    "SessionWindowedSerde",
    "StoreSpec",
    "Streams",
    "StreamsBuilder",
    "TimeWindowedSerde",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "Windowed",
    "WindowedKStream",
    "col",
    "concat",
    "fields",
    "hopping",
    "join_within",
    "key",
    "key_value_store",
    "lit",
    "session",
    "sliding",
    "tumbling",
    "until_time_limit",
    "until_window_closes",
    "value",
    "window_store",
]


def __getattr__(name: str) -> Any:
    """Running needs PySpark, which drawing and testing do not."""
    if name != "Streams":
        raise AttributeError(f"module 'ottla.streams' has no attribute {name!r}")
    from importlib import import_module, util

    for needed in ("pyspark", "pyarrow", "pandas", "google.protobuf"):
        if util.find_spec(needed.partition(".")[0]) is None:
            raise ImportError(f"Streams needs {needed}: pip install 'ottla[spark]'")
    return import_module("ottla.streams.application").Streams
