"""Whether a query's checkpoint is worth anything, wherever it is kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_begun(place: str, spark: SparkSession) -> bool:
    """Whether a micro-batch is finished there; what there is besides is removed if none is."""
    if "://" in place:
        return _is_begun_far_away(place, spark)
    commits = Path(place) / "commits"
    if commits.is_dir() and any(file.name.isdecimal() for file in commits.iterdir()):
        return True
    shutil.rmtree(place, ignore_errors=True)
    return False


def _is_begun_far_away(place: str, spark: SparkSession) -> bool:
    """Through Spark's own file systems; where they are out of reach, the checkpoint counts."""
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        return True
    path = jvm.org.apache.hadoop.fs.Path
    commits = path(f"{place}/commits")
    files = commits.getFileSystem(spark._jsc.hadoopConfiguration())
    if files.exists(commits):
        names = [str(found.getPath().getName()) for found in files.listStatus(commits)]
        if any(name.isdecimal() for name in names):
            return True
    files.delete(path(place), True)
    return False
