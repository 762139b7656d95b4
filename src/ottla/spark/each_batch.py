"""Exactly once for what Spark's Python sinks cannot take: updates, and frames made in foreachBatch.

Spark refuses update mode for a data source in Python. In `foreachBatch` any frame can be written,
and a batch write with a name and a number is written once: here both are put in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from ottla.errors import ConfigError
from ottla.spark.writers import NAME_PREFIX, QUERY_ID

WriteBatch = Callable[[DataFrame, int], None]


def to_topic(
    topic: str | None = None,
    *,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
) -> WriteBatch:
    """For `foreachBatch`: writes each micro-batch once, under the name of the query.

    Without a topic each row names its own. `options` are those of a batch write.
    """
    chosen = {"kafka.bootstrap.servers": bootstrap_servers, **(options or {})}
    if topic is not None:
        chosen["topic"] = topic

    def write(frame: DataFrame, batch_id: int) -> None:
        name = chosen.get("transactionalId") or f"{NAME_PREFIX}{_query_of(frame)}"
        numbered = {**chosen, "transactionalId": name, "batchId": str(batch_id)}
        frame.write.format("ottla").options(**numbered).mode("append").save()

    return write


def _query_of(frame: DataFrame) -> str:
    query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if not query:
        raise ConfigError(
            "transactionalId", "this frame belongs to no streaming query", "set it in the options"
        )
    return query
