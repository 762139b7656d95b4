"""Spark's workers run PySpark as pip has installed it, not from the zip of sources beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from ottla.spark.python_workers import worker_python

LIBRARIES = Path(pyspark.__file__).parent / "python" / "lib"
TELL = "import json, os, sys; print(json.dumps([os.environ['PYTHONPATH'], sys.argv[1:]]))"


def told(path: list[str], *arguments: str) -> list[object]:
    """The path and the arguments of a Python that was started as Spark starts it."""
    done = subprocess.run(
        [worker_python(), "-c", TELL, *arguments],
        env={**os.environ, "PYTHONPATH": ":".join(path)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not (LIBRARIES / "pyspark.zip").exists(), reason="this PySpark has no zip")
def test_only_pysparks_own_zips_leave_the_path() -> None:
    zips = [str(zip_file) for zip_file in LIBRARIES.glob("*.zip")]
    others = ["/a folder/x", "/elsewhere/python/lib/pyspark.zip", str(LIBRARIES)]
    assert told([*zips, *others], "one two", "*") == [":".join(others), ["one two", "*"]]
    assert told(zips) == ["", []]


def test_a_worker_is_this_python_with_the_installed_pyspark(spark: SparkSession) -> None:
    @udf("string")
    def where(_: int) -> str:
        return json.dumps([sys.executable, pyspark.__file__])

    (row,) = spark.range(1).select(where("id").alias("where")).collect()
    assert json.loads(row["where"]) == [sys.executable, pyspark.__file__]
