"""`format("ottla")` as Spark sees it: the four ways in, each with its options checked at once."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.spark.batch_reader import batch_reader
from ottla.spark.options import Use
from ottla.spark.plain_errors import plainly
from ottla.spark.record_columns import check_read_schema, read_columns
from ottla.spark.sink_plan import sink_plan
from ottla.spark.source_plan import SourcePlan, source_plan
from ottla.spark.stream_reader import StreamReader
from ottla.spark.writers import BatchWriter, StreamWriter


class OttlaDataSource(DataSource):
    """Topics of a Kafka cluster as frames."""

    @classmethod
    def name(cls) -> str:
        """What goes into format()."""
        return "ottla"

    def schema(self) -> StructType:
        """The columns of a read. Does not know yet whether it is a batch or a stream."""
        with plainly():
            return read_columns(has_headers=_has_headers(self._texts))

    def reader(self, schema: StructType) -> DataSourceReader:
        """spark.read"""
        return batch_reader(self._source_plan(Use.READ, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """spark.readStream"""
        return StreamReader(self._source_plan(Use.STREAM_READ, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """frame.write"""
        with plainly():
            if overwrite:
                raise ConfigError("mode", "a topic cannot be overwritten", "use append")
            return BatchWriter(sink_plan(Use.WRITE, self._texts, schema))

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """frame.writeStream. Updates are written as rows that follow each other."""
        del overwrite
        with plainly():
            return StreamWriter(sink_plan(Use.STREAM_WRITE, self._texts, schema))

    @property
    def _texts(self) -> Mapping[str, str]:
        return dict(self.options)

    def _source_plan(self, use: Use, schema: StructType) -> SourcePlan:
        with plainly():
            plan = source_plan(use, self._texts)
            check_read_schema(schema, has_headers=plan.has_headers)
            return plan


def _has_headers(options: Mapping[str, str]) -> bool:
    return {name.lower(): text.lower() for name, text in options.items()}.get(
        "includeheaders"
    ) == "true"
