"""Topics as Spark frames: `format("ottla")` for read, readStream, write and writeStream.

local_spark.py, java.py, python_workers.py    a local Spark, tuned, its Java and its Python;
                    register() for any other Spark
data_source.py, plain_errors.py    what Spark calls, and how it is told what is wrong
options.py          names and texts of options        source_plan.py, sink_plan.py  what they mean
selection.py, bounds.py, offsets.py    which partitions, from where to where
cluster_access.py, arrivals.py    what the driver asks the cluster, and what it waits for
offset_ranges.py, admission.py, pushdown.py    pure decisions on what is read when, by which task
batch_reader.py, stream_reader.py, range_reader.py, record_columns.py    reading
writers.py, row_encoder.py, batch_appender.py      writing: rows to record batches to partitions
hand_over.py, staged_batches.py    from tasks to the driver, in files where it is much
batch_commit.py, ledger.py    a micro-batch in one transaction, once
each_batch.py       the same inside of foreachBatch, for update mode
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.spark.data_source import OttlaDataSource as OttlaDataSource
    from ottla.spark.each_batch import to_topic as to_topic
    from ottla.spark.local_spark import register as register
    from ottla.spark.local_spark import session as session

_HOMES = {
    "OttlaDataSource": "ottla.spark.data_source",
    "register": "ottla.spark.local_spark",
    "to_topic": "ottla.spark.each_batch",
    "session": "ottla.spark.local_spark",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ottla.spark' has no attribute {name!r}")
    from importlib import import_module, util

    if util.find_spec("pyspark") is None:
        raise ImportError("this needs PySpark, which is an extra: pip install 'ottla[spark]'")
    return getattr(import_module(home), name)
