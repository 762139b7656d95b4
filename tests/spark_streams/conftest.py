"""The Spark of the connector's tests, for applications; skipped where Streams cannot run."""

import pytest

from spark.conftest import spark

__all__ = ["spark"]

for needed in ("pyspark", "pandas", "google.protobuf"):
    pytest.importorskip(needed)
