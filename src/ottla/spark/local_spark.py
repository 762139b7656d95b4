"""A small Spark on this machine, with the settings that matter for one, and our format in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from ottla.spark.data_source import OttlaDataSource
from ottla.spark.java import use_java
from ottla.spark.python_workers import worker_python

SETTINGS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
"""Nothing listens beyond this machine; large batches to Python; state may outgrow memory, and a
micro-batch writes down what changed of it, not all of it."""
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def session(
    app_name: str = "ottla",
    *,
    cores: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A local session that knows `format("ottla")`, or the one there is; `settings` win."""
    use_java()
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = worker_python()
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    count = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName(app_name).master(f"local[{count}]")
    chosen = {**SETTINGS, "spark.sql.shuffle.partitions": str(count), **(settings or {})}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Makes `format("ottla")` known to a session, and lets filters reach it."""
    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(OttlaDataSource)
