"""One Spark for all tests of a worker; it takes seconds to start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A small local session that knows the format, and tries a task three times."""
    pytest.importorskip("pyspark")
    import ottla.spark

    session = ottla.spark.session(
        "ottla tests",
        cores=2,
        settings={
            "spark.master": "local[2,3]",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.maxResultSize": "2m",  # less than some tests write
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
